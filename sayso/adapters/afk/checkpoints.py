"""Reads and restores the checkpoint of a waiting AFK run; its wall-clock times are shifted by the time waited."""

import json
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from sayso.adapters.base import UsageMeter
from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import ModelUsage
from sayso.errors import InvalidInput
from sayso.runner.models import RequestedCall

_RESUMED_KEY = "sayso:{run_id}:driven"
"""Sayso writes the step it resumes from under this key. Other processes leave no such mark."""


class Memory(Protocol):
    """The part of AFK's memory store that holds checkpoints."""

    async def setup(self) -> None: ...

    async def close(self) -> None: ...

    async def get_state(self, thread_id: str, key: str) -> Any: ...

    async def put_state(self, thread_id: str, key: str, value: Any) -> None: ...


class _Inbound(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Call(_Inbound):
    id: str | None = None
    tool_name: str
    arguments: dict[str, Any] = {}


class _Turn(_Inbound):
    text: str | None = None
    tool_calls: list[_Call]


class _Usage(_Inbound):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Payload(_Inbound):
    started_at_s: float
    pending_llm_response: _Turn
    usage: _Usage | None = None
    llm_calls: int = 0
    normalized_model: str | None = None


_UNUSED = _Usage(input_tokens=0, output_tokens=0)
_NOTHING = _Payload(started_at_s=0, pending_llm_response=_Turn(tool_calls=[]), usage=_UNUSED)


class _Checkpoint(_Inbound):
    step: int
    payload: _Payload


class WaitingRun(_Inbound):
    """A waiting run with the checkpoint that AFK has saved. Sayso stores this as the state."""

    run_id: str
    thread_id: str
    step: int
    suspended_at_ms: int
    saved: dict[str, JsonValue]

    @property
    def text(self) -> str:
        return self._turn.text or ""

    @property
    def calls(self) -> tuple[RequestedCall, ...]:
        return tuple(
            RequestedCall(
                call_id=call.id or f"{self.run_id}:{self.step}:{place}",
                name=call.tool_name,
                args_json=json.dumps(call.arguments),
                subagent="",
            )
            for place, call in enumerate(self._turn.tool_calls)
        )

    @property
    def _payload(self) -> _Payload:
        return _Checkpoint.model_validate(self.saved).payload

    @property
    def _turn(self) -> _Turn:
        return self._payload.pending_llm_response

    def read_usage(self, before: "WaitingRun | None") -> tuple[ModelUsage, ...] | None:
        """Return the usage since the run waited `before`, or began. AFK counts the whole run."""
        now, earlier = self._payload, before._payload if before is not None else _NOTHING
        if now.usage is None or earlier.usage is None or now.llm_calls <= earlier.llm_calls:
            return None
        meter = UsageMeter()
        given = (now.usage.input_tokens or 0) - (earlier.usage.input_tokens or 0)
        made = (now.usage.output_tokens or 0) - (earlier.usage.output_tokens or 0)
        meter.note(now.normalized_model, given, made, now.llm_calls - earlier.llm_calls)
        return meter.read()


def read_native(native: JsonObject) -> WaitingRun:
    """Return the saved run. Raises `InvalidInput` if it is malformed."""
    try:
        waiting = WaitingRun.model_validate(native)
        _Checkpoint.model_validate(waiting.saved)
    except ValidationError as error:
        raise InvalidInput(
            f"The saved state is not a waiting AFK run: {error.error_count()} values are invalid. Cancel this run."
        ) from error
    return waiting


async def read_waiting(memory: Memory, run_id: str, thread_id: str, step: int, now_ms: int) -> JsonObject:
    """Return the run that waits in this step. Raises `InvalidInput` if AFK has not saved it."""
    saved = await memory.get_state(thread_id, f"checkpoint:{run_id}:{step}:runtime_state")
    try:
        _Checkpoint.model_validate(saved)
    except ValidationError as error:
        raise InvalidInput(
            f"AFK has saved no checkpoint of step {step} of {run_id}. Pass memory_store=hooks.memory to its Runner."
        ) from error
    return {"run_id": run_id, "thread_id": thread_id, "step": step, "suspended_at_ms": now_ms, "saved": saved}


async def was_resumed_elsewhere(memory: Memory, waiting: WaitingRun) -> bool:
    """Return whether a process other than Sayso has resumed the run."""
    latest = await memory.get_state(waiting.thread_id, f"checkpoint:{waiting.run_id}:latest")
    resumed = await memory.get_state(waiting.thread_id, _RESUMED_KEY.format(run_id=waiting.run_id))
    if not isinstance(latest, dict) or resumed == {"step": waiting.step}:
        return False
    return latest.get("step") != waiting.step or latest.get("phase") == "run_terminal"


async def restore(memory: Memory, waiting: WaitingRun, now_ms: int) -> None:
    """Make the saved checkpoint AFK's latest of the run, also after a failed attempt to resume."""
    run_id, step, thread_id = waiting.run_id, waiting.step, waiting.thread_id
    shifted = shift(waiting.saved, max(0, now_ms - waiting.suspended_at_ms) / 1000)
    await memory.put_state(thread_id, _RESUMED_KEY.format(run_id=run_id), {"step": step})
    await memory.put_state(thread_id, f"checkpoint:{run_id}:{step}:runtime_state", shifted)
    await memory.put_state(thread_id, f"checkpoint:{run_id}:latest", shifted)


def shift(saved: JsonObject, waited_s: float) -> JsonObject:
    """Return the checkpoint with the start of the run and of its tickets moved into the future."""
    payload: Any = saved["payload"]
    tickets = [
        {**ticket, "created_at_s": ticket["created_at_s"] + waited_s}
        for ticket in payload.get("background_tools_pending") or ()
    ]
    moved = {"started_at_s": payload["started_at_s"] + waited_s, "background_tools_pending": tickets}
    return {**saved, "payload": {**payload, **moved}}
