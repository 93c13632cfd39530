"""Client for chat-completions endpoints, without streaming. Responses are untrusted: each known field is validated."""

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

from sayso.core.canonical_json import MAX_INTEGER, JsonObject
from sayso.core.clock import now_ms
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput, ModelError
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall

MAX_RESPONSE_BYTES = 1024 * 1024
MAX_WAIT_S = 30.0
"""The limit on `Retry-After`."""

_EXCERPT_CHARS = 300
_RETRYABLE = frozenset({408, 429, *range(500, 600)})
_USAGE_KEYS = ("prompt_tokens", "completion_tokens", "total_tokens")
_random = random.SystemRandom()


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
    status: int | None
    body: bytes = b""
    retry_after: str | None = None
    error: str = ""

    @property
    def is_retryable(self) -> bool:
        return self.status is None or self.status in _RETRYABLE


class ChatCompletionsModel:
    """A model at `{base_url}/chat/completions`. `options` are sent with every request, such as a temperature.

    Network errors, 408, 429 and 5xx are retried with a growing delay. Each event loop has its own connections.
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
        try:
            url = httpx.URL(f"{base_url.rstrip('/')}/chat/completions")
        except httpx.InvalidURL as error:
            raise InvalidInput(f"The model's address is invalid: {error}. Write it as https://host/v1.") from error
        if url.scheme not in ("http", "https") or not url.host:
            raise InvalidInput(f"{base_url!r} is not the address of a model. Write it as https://host/v1.")
        self._url = url
        self._model = model
        if api_key is not None and not re.fullmatch(r"[!-~]+", api_key):
            raise InvalidInput("The model's key cannot be sent in a header. Use printable ASCII without spaces.")
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._max_attempts = max(1, max_attempts)
        self._backoff_s = backoff_s
        self._options = options or {}
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def describe(self) -> JsonObject:
        """Return the facts that rules about model calls can use: model name and provider host."""
        return {"model": self._model, "provider": self._url.host}

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the model's next turn. Raises `ModelError` if the last attempt fails."""
        request = {**self._options, **write_request(self._model, messages, tools)}
        for attempt in range(1, self._max_attempts):
            reply = await self._send(request)
            if not reply.is_retryable:
                return self._read(reply, attempt)
            wait_s = choose_wait_s(attempt, reply.retry_after, self._backoff_s * _random.uniform(0.5, 1), now_ms())
            await asyncio.sleep(wait_s)
        return self._read(await self._send(request), self._max_attempts)

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _send(self, request: JsonObject) -> _Reply:
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client().stream("POST", self._url, json=request) as response,
            ):
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_RESPONSE_BYTES:
                        break  # an endless body is detected and not read
                return _Reply(response.status_code, bytes(body), response.headers.get("retry-after"))
        except (TimeoutError, httpx.TimeoutException):
            return _Reply(None, error=f"did not respond within {self._timeout_s:g} s")
        except httpx.HTTPError as error:
            return _Reply(None, error=f"could not be reached: {str(error) or type(error).__name__}")

    def _read(self, reply: _Reply, attempts: int) -> ModelTurn:
        endpoint = f"The model endpoint {self._url.host}"
        tries = f" after {attempts} attempts" if attempts > 1 else ""
        if reply.status is None:
            raise ModelError(
                f"{endpoint} {self._hide_key(reply.error)}{tries}. Check that it is running, then start the run again.",
                status=None,
                attempts=attempts,
            )
        if reply.status != httpx.codes.OK:
            text = " ".join(self._hide_key(reply.body.decode("utf-8", "replace")).split())
            excerpt = text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}…"
            raise ModelError(
                f"{endpoint} answered {reply.status}{tries}: {excerpt} Check its address, the model name and the key.",
                status=reply.status,
                attempts=attempts,
            )
        if len(reply.body) > MAX_RESPONSE_BYTES:
            raise ModelError(f"{endpoint} sent more than {MAX_RESPONSE_BYTES} bytes. Limit its responses.")
        try:
            return read_turn(reply.body)
        except ValueError as error:
            reason = self._hide_key(str(error))
            raise ModelError(f"{endpoint} sent no valid chat completion. {reason}", status=reply.status) from None

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients = {key: client for key, client in self._clients.items() if not key.is_closed()}
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            self._clients[loop] = httpx.AsyncClient(headers=headers, timeout=self._timeout_s)
        return self._clients[loop]

    def _hide_key(self, text: str) -> str:
        return text.replace(self._api_key, "[key]") if self._api_key else text


def write_request(model: str, messages: Sequence[ChatMessage], tools: Sequence[ToolDefinition]) -> JsonObject:
    """Return the body of a request."""
    definitions: list[JsonValue] = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
    request: JsonObject = {"model": model, "messages": [*messages]}
    return {**request, "tools": definitions} if definitions else request


def read_turn(raw: bytes) -> ModelTurn:
    """Return the turn in a response body. Raises `ValueError` if the body is invalid."""
    try:
        completion = _Completion.model_validate(json.loads(raw))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{'.'.join(map(str, fault['loc'])) or 'The body'}: {fault['msg']}.") from None
    except RecursionError:
        raise ValueError("It is nested too deeply.") from None
    except ValueError:
        raise ValueError("It is not JSON.") from None
    choice = completion.choices[0]
    message = choice.message
    usage = completion.usage if isinstance(completion.usage, dict) else {}
    counts = {key: usage.get(key) for key in _USAGE_KEYS}
    return ModelTurn(
        text=message.content or message.refusal or "",
        calls=tuple(map(_read_call, message.tool_calls or ())),
        finish_reason=choice.finish_reason,
        usage={key: count for key, count in counts.items() if type(count) is int and 0 <= count <= MAX_INTEGER},
    )


def choose_wait_s(attempt: int, retry_after: str | None, backoff_s: float, at_ms: int) -> float:
    """Return the delay before the next attempt: `Retry-After`, or a delay that doubles each time."""
    requested_s = _read_retry_after(retry_after, at_ms)
    return min(MAX_WAIT_S, backoff_s * 2 ** (attempt - 1) if requested_s is None else max(0.0, requested_s))


def _read_retry_after(header: str | None, at_ms: int) -> float | None:
    if header is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", header.strip(), re.ASCII):
        return float(header)
    try:
        return parsedate_to_datetime(header).timestamp() - at_ms / 1000
    except (ValueError, OverflowError):
        return None


def _read_call(call: _Call) -> RequestedCall:
    arguments = call.function.arguments
    return RequestedCall(
        call_id=call.id or "",
        name=call.function.name or "",
        args_json=json.dumps(arguments) if isinstance(arguments, dict) else arguments or "",
    )
