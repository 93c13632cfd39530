"""The hooks through which AFK asks Sayso: policy role, interaction provider, wrapped tools, and a collector of events.

Policies and providers get no ids, so a call is identified by its position in the turn. Each event is sent to Sayso
once, even if sending is retried.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sayso.adapters.afk.checkpoints import Memory, WaitingRun
from sayso.adapters.afk.tools import (
    POLICY_ID,
    AfkCall,
    find_tools,
    load_types,
    read_deferred,
    wrap_tools,
    write_deferred,
)
from sayso.adapters.base import TOOL_ERROR
from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id, now_ms
from sayso.errors import SaysoError
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.judging import known_id
from sayso.runner.protocol import ToolFailed, describe_refusal, describe_result
from sayso.runner.tools import plain_json
from sayso.timeline.external_events import MAX_BATCH_EVENTS, fit_events
from sayso.timeline.merging import SourceFormat

_MAX_EVENTS = 2_000
_OUR_DENIAL = ("deny", POLICY_ID)
_LOG = logging.getLogger("sayso")


@dataclasses.dataclass(frozen=True)
class TimedEvent:
    """An AFK event and the time it was received."""

    event: JsonObject
    at: datetime


class ExternalEvents:
    """The events of a segment of a run, numbered within a source of their own."""

    def __init__(self) -> None:
        self.events: list[TimedEvent] = []
        self._source = new_id("afk")
        self._sent: dict[str, int] = {}

    def note(self, event: Any) -> None:
        """Keep an event, up to a limit. Sayso's own denials are skipped: they are in its trail."""
        data = event.data or {}
        if event.type == "policy_decision" and (data.get("action"), data.get("policy_id")) == _OUR_DENIAL:
            return
        if len(self.events) < _MAX_EVENTS:
            names = ("type", "run_id", "thread_id", "state", "step", "message")
            written = {name: getattr(event, name, None) for name in names}
            kept: JsonObject = {name: value for name, value in written.items() if value is not None}
            try:
                kept["data"] = plain_json(data)
            except SaysoError as error:
                kept["data"] = {"left_out": error.message}
            self.events.append(TimedEvent(kept, datetime.fromtimestamp(now_ms() / 1000, UTC)))

    @property
    def raw(self) -> tuple[JsonObject, ...]:
        return tuple(timed.event for timed in self.events)

    async def send(self, client: AsyncClient, run_id: str) -> None:
        """Send new events to the run's timeline. A failure is logged, and the run continues."""
        until = len(self.events)
        try:
            for first in range(self._sent.get(run_id, 0), until, MAX_BATCH_EVENTS):
                batch = self.events[first : min(until, first + MAX_BATCH_EVENTS)]
                events, times = fit_events(timed.event for timed in batch), [timed.at for timed in batch]
                await client.report_events(
                    run_id, SourceFormat.AFK, events, source=self._source, first_seq=first + 1, at=times
                )
        except SaysoError as error:
            _LOG.warning("AFK's events of run %s were not sent: %s", run_id, error.message)
            return
        self._sent[run_id] = until


JUDGING_CALL = "tool_before_execute"


@dataclass(frozen=True)
class Position:
    """The position of a call: run, step and index within its turn."""

    run_id: str
    step: int
    occurrence: int

    @property
    def label(self) -> str:
        """An id that is the same in every process."""
        return f"{self.run_id}:{self.step}:{self.occurrence}"


@dataclass
class _Turn:
    step: int | None = None
    names: Sequence[Any] = ()
    ids: Sequence[Any] = ()
    judged: int = 0
    last: str = ""


@dataclass
class Turns:
    """The current turn of each run, read from its events. The first run is the root of the others."""

    root: str | None = None
    thread_id: str | None = None
    _turns: dict[str, _Turn] = field(default_factory=dict)

    def follow(self, event: Any) -> None:
        self.root, self.thread_id = self.root or event.run_id, self.thread_id or event.thread_id
        turn = self._turns.setdefault(event.run_id, _Turn())
        if event.type == "tool_batch_started":
            names, ids = event.data.get("tool_names", ()), event.data.get("tool_call_ids", ())
            self._turns[event.run_id] = _Turn(event.step, names, ids)
        elif event.type == "policy_decision":
            turn.last = event.data.get("event_type", "")
            turn.judged += turn.last == JUDGING_CALL

    def forget(self, run_id: str) -> None:
        self._turns.pop(run_id, None)

    def find_next(self, run_id: str, step: int) -> Position | None:
        """Return the call being judged, or None if its turn has not been seen."""
        turn = self._turns.get(run_id, _Turn())
        return Position(run_id, step, turn.judged) if turn.step == step else None

    def find_judged(self, run_id: str, step: int) -> Position | None:
        """Return the call judged last, or None if something else was judged last."""
        turn = self._turns.get(run_id, _Turn())
        known = turn.step == step and turn.last == JUDGING_CALL and turn.judged > 0
        return Position(run_id, step, turn.judged - 1) if known else None

    def name_of(self, position: Position) -> str:
        names = self._turns.get(position.run_id, _Turn()).names
        return str(names[position.occurrence]) if position.occurrence < len(names) else ""

    def id_of(self, position: Position) -> str | None:
        ids = self._turns.get(position.run_id, _Turn()).ids
        return (ids[position.occurrence] or None) if position.occurrence < len(ids) else None


NOT_DECIDED = "No decision covers this call. It did not run."
_NOT_A_CALL = "Reviewers decide only on tool calls here."


class Stopped(BaseException):
    """Stops the run as it was saved. Not an `Exception`: AFK would treat the run as failed."""


class Hooks:
    """What agent and runner are built with, for one segment of a run: up to its first undecided call or its end."""

    def __init__(self, memory: Memory, waiting: WaitingRun | None = None, executor: CallExecutor | None = None) -> None:
        self.memory = memory
        self.tools: list[Any] = []
        self.stopped = asyncio.Event()
        self.stopped_at: Position | None = None
        self.external_events = ExternalEvents()
        self._types = load_types()
        self.turns = Turns(waiting.run_id, waiting.thread_id) if waiting is not None else Turns()
        self.waiting = waiting
        self._executor = executor
        self._admitted: list[BatchCall] = []

    @property
    def provider(self) -> "Hooks":
        return self

    def gate(self, tools: Sequence[Any]) -> list[Any]:
        """Return the agent's tools such that each starts only if approved."""
        gated = wrap_tools(find_tools(tools), self._call)
        self.tools += gated
        return gated

    async def role(self, event: Any) -> Any:
        """Act as AFK's policy role: return the decision, or request approval."""
        if event.event_type != JUDGING_CALL:
            return self._types.allow()
        position = self.turns.find_next(event.run_id, event.step)
        if position is None or position.run_id != self.turns.root:
            return self._types.deny(NOT_DECIDED)
        if not self._is_decided(position):
            payload = {"tool_name": event.tool_name, "tool_args": event.tool_args, "call": position.label}
            reason = f"Sayso decides on {event.tool_name}"
            return self._types.policy_decision(action="request_approval", reason=reason, request_payload=payload)
        entry, refusal = self._admit(position, event.tool_name)
        return self._types.deny(refusal) if entry is None else self._types.allow(dict(entry.call.args))

    async def request_approval(self, request: Any) -> Any:
        """Return the decision, or defer. AFK's own rules ask here too."""
        position = self.turns.find_judged(request.run_id, request.step)
        if position is None or position.run_id != self.turns.root:
            return self._types.approval_decision(kind="deny", reason=_NOT_A_CALL)
        if not self._is_decided(position):
            return self._types.deferred_decision(token=position.label)
        entry, refusal = self._admit(position, self.turns.name_of(position))
        return self._types.approval_decision(kind="deny" if entry is None else "allow", reason=refusal)

    async def request_user_input(self, request: Any) -> Any:
        position = self.turns.find_judged(request.run_id, request.step)
        if position is None or position.run_id != self.turns.root:
            return self._types.user_input_decision(kind="deny", reason=_NOT_A_CALL)
        if not self._is_decided(position):
            return self._types.deferred_decision(token=position.label)
        entry, refusal = self._admit(position, self.turns.name_of(position))
        if entry is None:
            return self._types.user_input_decision(kind="deny", reason=refusal)
        value = entry.call.args.get(str(request.payload.get("target_arg")))
        return self._types.user_input_decision(kind="allow", value=None if value is None else str(value))

    async def await_deferred(self, token: str, *, timeout_s: float) -> Any:
        """Stop the run. It waits at Sayso, and so does AFK's timeout."""
        run_id, step, occurrence = token.rsplit(":", 2)
        raise self._stop(Position(run_id, int(step), int(occurrence)))

    async def notify(self, event: Any) -> None:
        self.turns.follow(event)
        self.external_events.note(event)

    async def _call(self, call: AfkCall) -> Any:
        """Run the call through the gate with the approved arguments. Those from AFK are ignored."""
        # Without ids from the model, calls start in the order of admission.
        named = [entry for entry in self._admitted if entry.call.name == call.name]
        match = next((entry for entry in named if entry.call.call_id == known_id(call.call_id or "")), None)
        if match is None and self.waiting is not None:
            unnamed = f"{self.waiting.run_id}:{self.waiting.step}:"
            match = next((entry for entry in named if entry.call.call_id.startswith(unnamed)), None)
        if match is not None:
            self._admitted.remove(match)
        executor, entry = self._executor, match
        if executor is None or entry is None or current_executor() is not executor:
            return self._types.fail(NOT_DECIDED)
        ran: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            ran.append(await call.run(args))
            if not ran[0].success:
                raise ToolFailed(ran[0].error_message or TOOL_ERROR)
            return ran[0].output if ran[0].deferred is None else write_deferred(ran[0].deferred)

        try:
            result = await executor.run(entry, execute)
        except Exception as fault:  # the gate keeps it; AFK would report it to its model and continue
            raise self._stop(None) from fault
        native = ran[0] if ran else None
        if not result.success:
            own = native is not None and not native.success
            return native if own else self._types.fail(result.error or "")
        if (ticket := read_deferred(result.output)) is not None:
            return native or self._types.tool_result(deferred=self._types.tool_deferred_handle(**ticket))
        output = describe_result(entry, result)
        return replace(native, output=output) if native is not None else self._types.tool_result(output=output)

    def _admit(self, position: Position, name: str) -> tuple[BatchCall | None, str]:
        calls = self._executor.calls if self._executor is not None else ()
        entry = calls[position.occurrence] if position.occurrence < len(calls) else None
        if entry is None or entry.call.name != name:
            return None, NOT_DECIDED
        if (refusal := describe_refusal(entry)) is not None:
            return None, refusal
        self._admitted.append(entry)
        return entry, ""

    def _is_decided(self, position: Position) -> bool:
        return self._executor is not None and self.waiting is not None and position.step == self.waiting.step

    def _stop(self, position: Position | None) -> Stopped:
        self.stopped_at = position
        self.stopped.set()
        return Stopped()
