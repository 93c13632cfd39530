"""Execution of the calls of one batch: journaled first, each run once, its result kept."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.records.base import Immutable
from sayso.core.records.events import Event
from sayso.core.records.items import Doubt
from sayso.core.records.suspensions import Intent, OperatorNote, SuspensionRecord
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.execution import Fence
from sayso.errors import IllegalTransition
from sayso.guarding.frameworks import guard_imports
from sayso.guarding.runs import use_gated_call, use_gated_run
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, BatchCall, PlannedCall, Stop, complete_batch
from sayso.runner.judging import known_id
from sayso.runner.tools import CallContext, ReportOutput, call_tool, catch_result, plain_json

MAX_CALLS_AT_ONCE = 16
NOTE_AFTER_S = 0.02
"""How long a finished call waits for the rest of its batch before its result is saved alone."""

_UNDECIDED = "{name} has no decision, so the run cannot resume. Nothing ran. Wait until all its items are decided."
_NOT_STARTED = "The framework did not start this call."
_BROKEN_OFF = "The framework broke this call off in the middle; nobody knows what it did."

Execute = Callable[[JsonObject], Awaitable[Any]]
State_contra = TypeVar("State_contra", bound=Immutable, contravariant=True)


class Journal(Protocol[State_contra]):
    """Saves what a run is about to do and what it has done. An error that it raises ends the drive at once."""

    async def recall(self, wanted: Collection[Wanted]) -> Readings:
        """Return what counters of rules hold."""

    async def list_notes(self) -> Sequence[OperatorNote]:
        """Return the notes of people that the model has not got, as far as they matter before it is asked."""

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: State_contra | None
    ) -> Mapping[int, str]:
        """Save which calls start, with `state` unless it is saved. Return their keys by index, the same each time.

        Raises `OverLimit`, and saves nothing, if a counter has reached its limit; the loop then judges them again.
        """

    async def confirm(self) -> None:
        """Check right before a call starts that this worker still holds the run; raises otherwise."""

    def note_start(self, key: str) -> None:
        """Note on this machine that the call with this key starts. Called in the thread that runs it."""

    def note_end(self, key: str, result: ToolResult) -> None:
        """Note on this machine how a call ended. Called in the thread that ran it."""

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        """Save results, by index, while other calls of the batch still run; raises nothing that ends those."""

    async def offer_undo(self, agent: Agent, calls: Sequence[BatchCall]) -> Sequence[Event]:
        """Let people undo calls that ran under a veto, before their results are saved; return the events of that."""

    async def return_permits(self, unused: Collection[int]) -> None:
        """Return the permits of journaled calls that never started, by index."""

    async def checkpoint(self, state: State_contra, events: Sequence[Event]) -> None:
        """Save the state; no call is under way."""

    def started_before(self) -> bool:
        """Whether an earlier attempt started calls of the saved batch."""

    def finished(self) -> Mapping[int, ToolResult]:
        """Return the results, by index, that an earlier attempt left for calls of the saved batch."""

    def unfinished(self) -> Mapping[int, Doubt]:
        """Return the calls of the saved batch, by index, that were started before and have no saved result."""


def plan_intent(record: SuspensionRecord, fence: Fence, planned: PlannedCall, step: int) -> Intent:
    """Return the journal entry of a call about to start."""
    call = planned.call
    return Intent(
        item_id=planned.item_id,
        call_id=call.call_id,
        index=call.index,
        tool=call.name,
        idempotency_key=planned.key or f"{record.id}:{planned.item_id or f'{step}.{call.index}'}",
        idempotent=planned.idempotent,
        attempt=fence.attempt,
        holder=fence.holder,
        begun_at_ms=0,
        charges=planned.charges,
    )


def make_context(run_id: str, planned: PlannedCall, key: str, repeated: Collection[int]) -> CallContext:
    """Return the context of a call about to start; a `repeated` one may have run under an earlier attempt."""
    return CallContext(run_id, planned.call.call_id, key, 2 if planned.call.index in repeated else 1)


async def run_calls(
    agent: Agent,
    run_id: str,
    planned: Sequence[PlannedCall],
    keys: Mapping[int, str],
    journal: Journal[Any],
    repeated: Collection[int] = (),
) -> Mapping[int, ToolResult]:
    """Run journaled calls together and return their results by index."""
    guard_imports()
    slots = asyncio.Semaphore(MAX_CALLS_AT_ONCE)
    ended: dict[int, ToolResult] = {}

    async def run(entry: PlannedCall) -> None:
        tool, index, key = agent.tools_by_name[entry.call.name], entry.call.index, keys[entry.call.index]
        context = make_context(run_id, entry, key, repeated)
        starting, ending = partial(journal.note_start, key), partial(journal.note_end, key)
        async with slots:
            await journal.confirm()
            with use_gated_run(agent.name):
                ended[index] = await call_tool(tool, entry.call, context, starting, ending, entry.read)

    if len(planned) == 1:  # a task of its own keeps the tool from cancelling the drive
        await asyncio.create_task(run(planned[0]))
        return ended
    running = asyncio.gather(*map(run, planned))
    await _note_early(running, ended, journal)
    await running
    return ended


async def _note_early(running: asyncio.Future[Any], ended: Mapping[int, ToolResult], journal: Journal[Any]) -> None:
    """Save results while others still run, so that a slow call does not keep quick ones in doubt."""
    noted: set[int] = set()
    try:
        while True:
            await asyncio.wait((running,), timeout=NOTE_AFTER_S)
            if running.done():
                return
            if fresh := {index: result for index, result in ended.items() if index not in noted}:
                await journal.note_results(fresh)
                noted |= fresh.keys()
    finally:
        if not running.done():
            running.cancel()


class CallExecutor:
    """The only way for a framework to run tools: each approved call once. Results are reported before it sees them.

    Raises `IllegalTransition` for a batch with a call that has neither a result nor a context: nobody has decided it.
    """

    def __init__(
        self,
        batch: Batch,
        contexts: Mapping[int, CallContext],
        on_complete: Callable[[Batch], Awaitable[None]],
        unseen: bool = False,
        confirm: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        for entry in batch.calls:  # an adapter, or a graph that runs its calls itself, takes no denial for an approval
            if entry.result is None and entry.call.index not in contexts:
                raise IllegalTransition(_UNDECIDED.format(name=entry.call.name))
        self._batch = batch
        self._contexts = contexts
        self._on_complete = on_complete
        self._results: dict[int, ToolResult] = {}
        self._started: set[int] = set()
        self._left_unseen = [entry.call.name for entry in batch.calls if unseen and entry.call.index in contexts]
        self._unseen = unseen
        self._confirm = confirm
        self.fault: Exception | None = None

    @property
    def calls(self) -> tuple[BatchCall, ...]:
        """The calls of the batch, in the model's order: each may run or has its result already."""
        return self._batch.calls

    def find(self, call_id: str, name: str) -> BatchCall | None:
        """Return the waiting call that the framework is about to run, or None. Two calls of a model may have one id."""
        wanted = (known_id(call_id), name)
        waiting = [entry for entry in self.calls if entry.call.index not in self._started]
        matches = [entry for entry in waiting if (entry.call.call_id, entry.call.name) == wanted]
        ready = [entry for entry in matches if entry.call.index in self._contexts]
        return next(iter(ready or matches), None)

    def admit_unseen(self, name: str) -> bool:
        """Return whether an approved call of this tool is left that the framework runs out of sight, and note it."""
        try:
            self._left_unseen.remove(name)
        except ValueError:
            return False
        return True

    async def run(self, entry: BatchCall, execute: Execute) -> ToolResult:
        """Run a call once; an error of the tool is a failed result. Raises what `confirm` and `on_complete` raise."""
        index = entry.call.index
        if entry.result is not None:
            self._started.add(index)
            return entry.result
        if self.fault is None and (index in self._started or index not in self._contexts):
            name = entry.call.name
            self.fault = IllegalTransition(f"{name} is not approved, or was started before. Request it again.")
        if self.fault is not None:
            raise self.fault
        self._started.add(index)
        if self._confirm is not None:
            await self._guard(self._confirm())

        async def run(report: ReportOutput) -> None:
            with use_gated_call(entry.call.name) as running:
                output = await execute(entry.call.args)
            running.check()
            report(plain_json(output))

        token = _CALL.set(self._contexts[index])
        try:
            self._results[index] = await catch_result(entry.call, run)
        finally:
            _CALL.reset(token)
        if self._results.keys() == self._contexts.keys():
            await self._complete()
        return self._results[index]

    async def close(self) -> None:
        """Report the calls that the framework never started, if it ended its turn without them."""
        if self.fault is not None:
            raise self.fault
        missing = self._contexts.keys() - self._results.keys()
        if not missing:
            return
        for entry in self.calls:
            if entry.call.index in missing:
                error = None if self._unseen else _BROKEN_OFF if entry.call.index in self._started else _NOT_STARTED
                self._results[entry.call.index] = ToolResult(
                    call_id=entry.call.call_id, tool_name=entry.call.name, success=error is None, error=error
                )
        await self._complete()

    def abandon(self, fault: Exception) -> tuple[frozenset[int], Mapping[int, ToolResult]]:
        """Let no further call start. Return the calls that certainly never started, and the results so far."""
        self.fault = self.fault or fault
        unused = frozenset() if self._unseen else frozenset(self._contexts) - self._started
        return unused, self._results

    async def _complete(self) -> None:
        await self._guard(self._on_complete(complete_batch(self._batch, self._results)))

    async def _guard(self, step: Awaitable[None]) -> None:
        """Keep the error of a step as the fault: a framework may take it for the tool's own error."""
        try:
            await step
        except Exception as error:
            self.fault = error
            raise


def list_started(batch: Batch) -> tuple[str, ...]:
    """Return the names of the tools whose calls ran, or may have run, in order."""
    names: list[str] = []
    for entry in batch.calls:
        if (result := entry.result) is not None:
            doubted = entry.stop is Stop.UNKNOWN or (entry.ask is not None and entry.ask.doubt is not None)
            if result.success or result.latency_ms is not None or result.error == _BROKEN_OFF or doubted:
                names.append(entry.call.name)
    return tuple(names)


def current_executor() -> CallExecutor | None:
    """Return the executor of the run that is driven in this context, if any."""
    return _EXECUTOR.get()


def current_call() -> CallContext | None:
    """Return the context of the call that this tool serves, such as its idempotency key; None outside of a call."""
    return _CALL.get()


@contextmanager
def use_executor(executor: CallExecutor | None, agent: str = "") -> Iterator[None]:
    """Make the executor of this agent's run current for everything that a framework starts within the block."""
    guard_imports()
    token = _EXECUTOR.set(executor)
    try:
        with use_gated_run(agent, executor.admit_unseen if executor is not None else None):
            yield
    finally:
        _EXECUTOR.reset(token)


_EXECUTOR: ContextVar[CallExecutor | None] = ContextVar("sayso_executor", default=None)
_CALL: ContextVar[CallContext | None] = ContextVar("sayso_call", default=None)
