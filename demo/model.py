"""Speak the chat-completions protocol and replay recorded turns, so that the demo needs no model and no network.

`python -m demo.model` listens on the port of `SAYSO_MODEL_URL`. It keeps nothing between two requests: the transcript
alone says which turn is next. The first user message is searched for the recorded requests; the n-th answer replays the
n-th of them, and after the last one comes a text that sums up what the tools returned.
"""

import json
from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from demo.turns import Turn, load_turns, plan_turns
from sayso.clock import new_id, now_ms
from service.http.connections import ServerConfig
from service.settings import Settings
from service.starting import start

NOTHING_RECORDED = "I have no recorded answer to that; demo/turns.jsonl holds the requests that I know."

JsonObject = dict[str, JsonValue]


class _Inbound(BaseModel):
    """Extra fields are let through: the protocol has many that a recording does not care for."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FunctionSaid(_Inbound):
    """The name in a call of an earlier answer."""

    name: str


class CallSaid(_Inbound):
    """A call of an earlier answer."""

    id: str
    function: FunctionSaid


class Message(_Inbound):
    """One message of the transcript."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[CallSaid, ...] = ()
    tool_call_id: str | None = None


class ToolSaid(_Inbound):
    """What a tool message holds: whether the call succeeded, and why not."""

    success: bool
    error: str | None = None


class CompletionRequest(_Inbound):
    """What a client sends."""

    model: str = Field(min_length=1)
    messages: tuple[Message, ...] = Field(min_length=1)
    stream: Literal[False] = False


def answer(messages: Sequence[Message], turns: Sequence[Turn]) -> JsonObject:
    """Return the assistant's next message: the next recorded turn, or the summary when there is none left."""
    asked = next((message.content for message in messages if message.role == "user"), None)
    plan = plan_turns(asked or "", turns)
    said = sum(1 for message in messages if message.role == "assistant")
    if said < len(plan):
        return _replay(plan[said])
    return {"role": "assistant", "content": _sum_up(messages) if plan else NOTHING_RECORDED}


def create_app(prefix: str, turns: Sequence[Turn]) -> FastAPI:
    """Return the endpoint, its routes below `prefix`."""
    app = FastAPI(title="Recorded model", openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post(f"{prefix}/chat/completions")
    async def complete(request: Request) -> JSONResponse:
        try:
            asked = CompletionRequest.model_validate_json(await request.body())
        except ValidationError as error:
            return _refuse(error)
        return JSONResponse(_completion(asked.model, answer(asked.messages, turns)))

    return app


def main(settings: Settings) -> int:
    """Serve until told to stop."""
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


def _sum_up(messages: Sequence[Message]) -> str:
    names = {call.id: call.function.name for message in messages for call in message.tool_calls}
    results = [
        (names.get(message.tool_call_id or "", "a call"), _read_result(message.content))
        for message in messages
        if message.role == "tool"
    ]
    missing = [f"{name} ({result.error})" for name, result in results if not result.success]
    done = f"{len(results) - len(missing)} of {len(results)} calls succeeded."
    return f"{done} Not done: {'; '.join(missing)}." if missing else done


def _read_result(content: str | None) -> ToolSaid:
    try:
        return ToolSaid.model_validate_json(content or "")
    except ValidationError:
        return ToolSaid(success=False, error="its result cannot be read")


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
