"""A chat-completions endpoint that replays recorded turns, so that the demo needs no model and no network.

`python -m demo.model` listens on the port of `SAYSO_MODEL_URL`. It is stateless: the transcript selects the next turn.
The first user message contains the recorded requests. The n-th response replays the n-th request. The last response
summarises the results of the tools.

Recorded model turns, and which of them a request replays.

The recordings are in `turns.jsonl`. `NOTICE.md` names their source and licence.
"""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from sayso.core.clock import new_id, now_ms
from sayso.core.records.base import Immutable
from service.core.logs import start
from service.core.settings import Settings
from service.edge.http.connections import ServerConfig

RECORDINGS = Path(__file__).with_name("turns.jsonl")


class RecordedMessage(Immutable):
    """A message to the model."""

    role: str
    content: str


class RecordedTool(Immutable):
    """A tool offered to the model."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class RecordedCall(Immutable):
    """A call of the model."""

    name: str
    arguments: dict[str, JsonValue]


class Turn(Immutable):
    """A recorded turn: the request, the offered tools, and the calls of the response."""

    id: str
    messages: tuple[RecordedMessage, ...]
    tools: tuple[RecordedTool, ...]
    calls: tuple[RecordedCall, ...]

    @property
    def request(self) -> str:
        """The text of the user."""
        return next(message.content for message in self.messages if message.role == "user")

    def call_id(self, index: int) -> str:
        """Return the id of the call at `index`, which is the same in every replay."""
        return f"call_{self.id.rpartition('/')[2]}_{index}"


@lru_cache(maxsize=1)
def load_turns(path: Path = RECORDINGS) -> tuple[Turn, ...]:
    """Return the recorded turns in file order."""
    with path.open(encoding="utf-8") as lines:
        return tuple(Turn.model_validate_json(line) for line in lines)


def plan_turns(text: str, turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return the turns whose request is in `text`, in the order of the text."""
    places = ((text.find(turn.request), turn) for turn in turns)
    return tuple(turn for place, turn in sorted(places, key=lambda pair: pair[0]) if place >= 0)


NOTHING_RECORDED = "I have no recording of this request. demo/turns.jsonl lists the requests that I can replay."

JsonObject = dict[str, JsonValue]


class _Inbound(BaseModel):
    """Base class for requests. Unknown fields of the protocol are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CallFunction(_Inbound):
    """The function of an earlier call."""

    name: str


class MessageCall(_Inbound):
    """A call in an earlier response."""

    id: str
    function: CallFunction


class Message(_Inbound):
    """A message of the transcript."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[MessageCall, ...] = ()
    tool_call_id: str | None = None


class ToolResult(_Inbound):
    """The content of a tool message."""

    success: bool
    error: str | None = None


class CompletionRequest(_Inbound):
    """The request of a client."""

    model: str = Field(min_length=1)
    messages: tuple[Message, ...] = Field(min_length=1)
    stream: Literal[False] = False


def choose_message(messages: Sequence[Message], turns: Sequence[Turn]) -> JsonObject:
    """Return the assistant's next message: the next recorded turn, or the summary after the last one."""
    request = next((message.content for message in messages if message.role == "user"), None)
    plan = plan_turns(request or "", turns)
    replayed = sum(1 for message in messages if message.role == "assistant")
    if replayed < len(plan):
        return _replay(plan[replayed])
    return {"role": "assistant", "content": _summarise(messages) if plan else NOTHING_RECORDED}


def create_app(prefix: str, turns: Sequence[Turn]) -> FastAPI:
    """Return the endpoint. Its routes start with `prefix`."""
    app = FastAPI(title="Recorded model", openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post(f"{prefix}/chat/completions")
    async def complete(request: Request) -> JSONResponse:
        try:
            body = CompletionRequest.model_validate_json(await request.body())
        except ValidationError as error:
            return _refuse(error)
        return JSONResponse(_completion(body.model, choose_message(body.messages, turns)))

    return app


def main(settings: Settings) -> int:
    """Serve until stopped."""
    app = create_app(urlsplit(settings.model_url).path.rstrip("/"), load_turns())
    config = ServerConfig(app, settings, host=settings.host, port=_port_of(settings), log_level="warning")
    server = uvicorn.Server(config)
    try:
        server.run()
    except KeyboardInterrupt:
        return 0
    return 0 if server.started else 1


def _port_of(settings: Settings) -> int:
    return urlsplit(settings.model_url).port or settings.demo_model_port


def _replay(turn: Turn) -> JsonObject:
    calls: list[JsonValue] = [
        {
            "id": turn.call_id(index),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(turn.calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _summarise(messages: Sequence[Message]) -> str:
    names = {call.id: call.function.name for message in messages for call in message.tool_calls}
    results = [
        (names.get(message.tool_call_id or "", "a call"), _read_result(message.content))
        for message in messages
        if message.role == "tool"
    ]
    failed = [f"{name} ({result.error})" for name, result in results if not result.success]
    summary = f"{len(results) - len(failed)} of {len(results)} calls succeeded."
    return f"{summary} Not done: {'; '.join(failed)}." if failed else summary


def _read_result(content: str | None) -> ToolResult:
    try:
        return ToolResult.model_validate_json(content or "")
    except ValidationError:
        return ToolResult(success=False, error="its result is not valid")


def _completion(model: str, message: JsonObject) -> JsonObject:
    finish_reason = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": now_ms() // 1000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def _refuse(error: ValidationError) -> JSONResponse:
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, fault["loc"]))
    message = f"{place}: {fault['msg']}" if place else str(fault["msg"])
    body = {"message": message, "type": "invalid_request_error", "param": place or None, "code": None}
    return JSONResponse({"error": body}, status_code=400)


if __name__ == "__main__":
    raise SystemExit(start(main))
