"""Ask a model behind any endpoint that speaks the chat-completions protocol, without streaming.

What comes back is from the outside world: only what is needed is read, and that is checked.
"""

import asyncio
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from sayso.canonical_json import MAX_INTEGER, JsonObject
from sayso.clock import now_ms
from sayso.errors import InvalidInput, ModelError
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall

MAX_ANSWER_BYTES = 1024 * 1024
LONGEST_WAIT_S = 30.0
"""An endpoint that says `Retry-After` is heeded, but not for longer than this."""

_EXCERPT_CHARS = 300
_TRY_AGAIN = frozenset({408, 429, *range(500, 600)})
_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
_chance = random.SystemRandom()


class _Inbound(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Function(_Inbound):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(_Inbound):
    id: str | None = None
    function: _Function


class _Message(_Inbound):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(_Inbound):
    message: _Message
    finish_reason: str | None = None


class _Completion(_Inbound):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


@dataclass(frozen=True)
class _Reply:
    """What came of one attempt: a status with its body, or in words why there is none."""

    status: int | None
    body: bytes = b""
    retry_after: str | None = None
    trouble: str = ""

    @property
    def worth_another(self) -> bool:
        return self.status is None or self.status in _TRY_AGAIN


class ChatCompletionsModel:
    """A model at `{base_url}/chat/completions`; `options` are sent along with every request, such as a temperature.

    Requests that fail on the way, or with 408, 429 or 5xx, are sent again after a growing wait. One client is kept for
    each event loop, for connections cannot move between loops.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 60,
        max_attempts: int = 3,
        backoff_s: float = 0.5,
        options: JsonObject | None = None,
    ) -> None:
        self._url = _check_url(base_url)
        self._model = model
        self._api_key = _check_key(api_key)
        self._timeout_s = timeout_s
        self._max_attempts = max(1, max_attempts)
        self._backoff_s = backoff_s
        self._options = options or {}
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def describe(self) -> JsonObject:
        """Return what rules about model calls may know: the model's name, and the host that provides it."""
        return {"model": self._model, "provider": self._url.host}

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the model's next turn; raises `ModelError` when the last attempt has failed too."""
        request = {**self._options, **write_request(self._model, messages, tools)}
        for attempt in range(1, self._max_attempts):
            reply = await self._send(request)
            if not reply.worth_another:
                return self._read(reply, attempt)
            wait_s = choose_wait_s(attempt, reply.retry_after, self._backoff_s * _chance.uniform(0.5, 1), now_ms())
            await asyncio.sleep(wait_s)
        return self._read(await self._send(request), self._max_attempts)

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _send(self, request: JsonObject) -> _Reply:
        try:
            async with asyncio.timeout(self._timeout_s), self._client().stream("POST", self._url, json=request) as got:
                body = await _read_body(got)
                return _Reply(got.status_code, body, got.headers.get("retry-after"))
        except (TimeoutError, httpx.TimeoutException):
            return _Reply(None, trouble=f"gave no answer within {self._timeout_s:g} s")
        except httpx.HTTPError as error:
            return _Reply(None, trouble=f"could not be reached: {str(error) or type(error).__name__}")

    def _read(self, reply: _Reply, attempts: int) -> ModelTurn:
        where = f"The model endpoint {self._url.host}"
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        if reply.status is None:
            raise ModelError(
                f"{where} {self._hide_key(reply.trouble)}{tried}. See that it is up, then start the run again.",
                status=None,
                attempts=attempts,
            )
        if reply.status != httpx.codes.OK:
            raise ModelError(
                f"{where} answered {reply.status}{tried}: {self._excerpt(reply.body)} "
                "Check its address, the model's name and the key.",
                status=reply.status,
                attempts=attempts,
            )
        if len(reply.body) > MAX_ANSWER_BYTES:
            raise ModelError(f"{where} answered with more than {MAX_ANSWER_BYTES} bytes. Limit the model's answers.")
        try:
            return read_turn(reply.body)
        except ValueError as error:
            why = self._hide_key(str(error))
            raise ModelError(f"{where} answered with what is no chat completion. {why}", status=reply.status) from None

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients = {one: client for one, client in self._clients.items() if not one.is_closed()}
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            self._clients[loop] = httpx.AsyncClient(headers=headers, timeout=self._timeout_s)
        return self._clients[loop]

    def _excerpt(self, body: bytes) -> str:
        words = " ".join(self._hide_key(body.decode("utf-8", "replace")).split())
        return words if len(words) <= _EXCERPT_CHARS else f"{words[:_EXCERPT_CHARS]}…"

    def _hide_key(self, text: str) -> str:
        return text.replace(self._api_key, "[key]") if self._api_key else text


def write_request(model: str, messages: Sequence[ChatMessage], tools: Sequence[ToolDefinition]) -> JsonObject:
    """Return the body of a request."""
    offered: list[JsonValue] = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
    request: JsonObject = {"model": model, "messages": [*messages]}
    return {**request, "tools": offered} if offered else request


def read_turn(raw: bytes) -> ModelTurn:
    """Return the turn in the body of a response; raises `ValueError`, saying what is wrong, for anything else."""
    try:
        completion = _Completion.model_validate(json.loads(raw))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{'.'.join(map(str, fault['loc'])) or 'The body'}: {fault['msg']}.") from None
    except RecursionError:
        raise ValueError("It is nested too deep to be read.") from None
    except ValueError:
        raise ValueError("It is not JSON.") from None
    choice = completion.choices[0]
    said = choice.message
    return ModelTurn(
        text=said.content or said.refusal or "",
        calls=tuple(map(_read_call, said.tool_calls or ())),
        finish_reason=choice.finish_reason,
        usage=_read_usage(completion.usage),
    )


def choose_wait_s(attempt: int, retry_after: str | None, backoff_s: float, at_ms: int) -> float:
    """Return how long to wait after a failed attempt: as the endpoint says, else twice as long each time."""
    said_s = _read_retry_after(retry_after, at_ms)
    return min(LONGEST_WAIT_S, backoff_s * 2 ** (attempt - 1) if said_s is None else max(0.0, said_s))


def _read_retry_after(header: str | None, at_ms: int) -> float | None:
    if header is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", header.strip(), re.ASCII):
        return float(header)
    try:
        return parsedate_to_datetime(header).timestamp() - at_ms / 1000
    except (ValueError, OverflowError):
        return None


def _read_call(said: _Call) -> RequestedCall:
    arguments = said.function.arguments
    return RequestedCall(
        call_id=said.id or "",
        name=said.function.name or "",
        args_json=json.dumps(arguments) if isinstance(arguments, dict) else arguments or "",
    )


def _read_usage(said: Any) -> dict[str, int]:
    if not isinstance(said, dict):
        return {}
    counts = {key: said.get(key) for key in _USAGE}
    return {key: count for key, count in counts.items() if type(count) is int and 0 <= count <= MAX_INTEGER}


async def _read_body(response: httpx.Response) -> bytes:
    """Return the body up to one byte more than is taken, so that an endless one is noticed and not read."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            break
    return bytes(body[: MAX_ANSWER_BYTES + 1])


def _check_url(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(f"{base_url.rstrip('/')}/chat/completions")
    except httpx.InvalidURL as error:
        raise InvalidInput(f"The model's address cannot be read: {error}. Write it as https://host/v1.") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidInput(f"{base_url!r} is no address of a model. Write it as https://host/v1.")
    return url


def _check_key(api_key: str | None) -> str | None:
    if api_key is not None and not re.fullmatch(r"[!-~]+", api_key):
        raise InvalidInput("The model's key cannot travel in a header. Use printable ASCII without spaces.")
    return api_key
