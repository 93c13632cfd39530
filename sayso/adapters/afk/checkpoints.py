"""Read what AFK has saved of a run that waits, and put it back so that the run goes on from exactly there.

AFK counts waiting as run time. So what it measures by the clock on the wall is moved by the time that was waited.
"""

import json
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.runner.models import RequestedCall

_MARK = "sayso:{run_id}:driven"
"""Under this key Sayso says from where it drives a run on; whoever else does leaves no such mark."""


class Memory(Protocol):
    """AFK's memory store, as far as a run's checkpoints go."""

    async def setup(self) -> None:
        """Be ready."""
        ...

    async def close(self) -> None:
        """Be done."""
        ...

    async def get_state(self, thread_id: str, key: str) -> Any:
        """Return what was put under the key, or None."""
        ...

    async def put_state(self, thread_id: str, key: str, value: Any) -> None:
        """Keep a value under the key."""
        ...


class _Seen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Call(_Seen):
    id: str | None = None
    tool_name: str
    arguments: dict[str, Any] = {}


class _Turn(_Seen):
    text: str | None = None
    tool_calls: list[_Call]


class _Payload(_Seen):
    started_at_s: float
    pending_llm_response: _Turn


class _Checkpoint(_Seen):
    step: int
    payload: _Payload


class Waiting(_Seen):
    """Where a run waits, and all of it that AFK has saved; this is what Sayso keeps."""

    run_id: str
    thread_id: str
    step: int
    paused_at_ms: int
    saved: dict[str, JsonValue]

    @property
    def text(self) -> str:
        """What the model said with its calls."""
        return self._turn.text or ""

    @property
    def calls(self) -> tuple[RequestedCall, ...]:
        """Return the calls of the turn that waits, in the model's order."""
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
    def _turn(self) -> _Turn:
        return _Checkpoint.model_validate(self.saved).payload.pending_llm_response


def read_native(native: JsonObject) -> Waiting:
    """Return the run that was kept; raises `InvalidInput` for what was never written here."""
    try:
        waiting = Waiting.model_validate(native)
        _Checkpoint.model_validate(waiting.saved)
    except ValidationError as error:
        raise InvalidInput(
            f"This is no state of an AFK run that waits: {error.error_count()} parts are wrong."
        ) from error
    return waiting


async def read_waiting(memory: Memory, run_id: str, thread_id: str, step: int, now_ms: int) -> JsonObject:
    """Return the run as it waits in this step; raises `InvalidInput` where AFK has not saved that."""
    saved = await memory.get_state(thread_id, f"checkpoint:{run_id}:{step}:runtime_state")
    try:
        _Checkpoint.model_validate(saved)
    except ValidationError as error:
        raise InvalidInput(
            f"AFK has saved nothing of step {step} of {run_id} to go on from. Give its Runner "
            "memory_store=seams.memory."
        ) from error
    return {"run_id": run_id, "thread_id": thread_id, "step": step, "paused_at_ms": now_ms, "saved": saved}


async def is_elsewhere(memory: Memory, waiting: Waiting) -> bool:
    """Whether somebody other than Sayso has driven the run on from where it waits."""
    latest = await memory.get_state(waiting.thread_id, f"checkpoint:{waiting.run_id}:latest")
    mark = await memory.get_state(waiting.thread_id, _MARK.format(run_id=waiting.run_id))
    if not isinstance(latest, dict) or mark == {"step": waiting.step}:
        return False
    return latest.get("step") != waiting.step or latest.get("phase") == "run_terminal"


async def put_back(memory: Memory, waiting: Waiting, now_ms: int) -> None:
    """Make what was kept the latest that AFK knows of the run, whatever became of an earlier try to go on."""
    run_id, step, thread_id = waiting.run_id, waiting.step, waiting.thread_id
    shifted = shift(waiting.saved, max(0, now_ms - waiting.paused_at_ms) / 1000)
    await memory.put_state(thread_id, _MARK.format(run_id=run_id), {"step": step})
    await memory.put_state(thread_id, f"checkpoint:{run_id}:{step}:runtime_state", shifted)
    await memory.put_state(thread_id, f"checkpoint:{run_id}:latest", shifted)


def shift(saved: JsonObject, waited_s: float) -> JsonObject:
    """Return a checkpoint as if it had been made so much later: its run began later, and so did its tickets."""
    payload: Any = saved["payload"]
    tickets = [
        {**one, "created_at_s": one["created_at_s"] + waited_s} for one in payload.get("background_tools_pending") or ()
    ]
    moved = {"started_at_s": payload["started_at_s"] + waited_s, "background_tools_pending": tickets}
    return {**saved, "payload": {**payload, **moved}}
