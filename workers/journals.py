"""Keep a run's journal on its suspension, through the desk: what is about to start, and what came of it."""

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress

from pydantic import BaseModel

from sayso.agents import Agent
from sayso.batches import Batch, PlannedCall, Resumption
from sayso.clock import iso_utc
from sayso.decisions import Verdict
from sayso.errors import Conflict, NotFound
from sayso.events import Event, EventType
from sayso.frameworks import FrameworkState
from sayso.rechecks import Recheck
from sayso.requests import Doubt, Item
from sayso.resumptions import Fence, approved_args
from sayso.states import SealedState, seal_state
from sayso.suspensions import Intent, RunEnd, SuspensionRecord
from sayso.tool_calls import ToolResult
from sayso.transcripts import RunState
from service.store.suspensions import Saved
from service.wiring import Wiring


def find_agent(agents: Mapping[str, Agent], record: SuspensionRecord) -> Agent:
    """Return the registered agent of the record's run; raises `NotFound`, naming those there are."""
    if record.run.agent in agents:
        return agents[record.run.agent]
    known = ", ".join(sorted(agents)) or "none"
    raise NotFound(f"This worker has no agent named {record.run.agent!r}; registered are: {known}.")


class DeskJournal:
    """The run's journal, kept on its suspension through the desk; every step of it is fenced by the lease."""

    def __init__(self, wiring: Wiring, leased: Saved, fence: Fence) -> None:
        self._desk = wiring.desk
        self._record = leased.record
        self._saved = leased
        self._fence = fence
        self._begun: tuple[Intent, ...] = ()

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: RunState | FrameworkState | None
    ) -> Mapping[int, str]:
        """Write down which calls are about to start; return the idempotency key of each by its index."""
        step = state.step if state is not None else self._record.step
        intents = tuple(plan_call(self._record, self._fence, planned, step) for planned in calls)
        keys = {intent.index: intent.idempotency_key for intent in intents}
        if not events and state is None and keys.keys() == self._spent_with_lease():
            self._begun = intents
            return keys
        sealed = seal(state) if state is not None else None
        self._saved = await self._desk.redeem(
            self._record.tenant, self._record.id, self._fence, intents, tuple(events), sealed, self._saved
        )
        self._begun = intents
        return keys

    async def checkpoint(self, state: RunState | FrameworkState, events: Sequence[Event]) -> None:
        """Save how far the run has come; when it is too late for that, report at least what the calls came to."""
        tenant, suspension_id = self._record.tenant, self._record.id
        try:
            self._saved = await self._desk.checkpoint(
                tenant, suspension_id, self._fence, seal(state), tuple(events), self._saved
            )
        except Conflict:
            await self._report_late(events)
            raise
        self._begun = ()

    async def settle(self, end: RunEnd, events: Sequence[Event]) -> None:
        """End the run; when it is too late for that, report at least what its calls came to."""
        try:
            await self._desk.settle(self._record.tenant, self._record.id, self._fence, end, tuple(events), self._saved)
        except Conflict:
            await self._report_late(events)
            raise

    async def _report_late(self, events: Sequence[Event]) -> None:
        """Another attempt has the run by now, and may be asking a person whether these very calls have run."""
        results = {event.data["index"]: event.data for event in events if event.type is EventType.TOOL_COMPLETED}
        tenant, run_id = self._record.tenant, self._record.run.id
        for intent in self._begun:
            told = results[intent.index]
            result = ToolResult(
                call_id=intent.call_id,
                tool_name=intent.tool,
                success=told["success"],
                output=told["output"],
                error=told["error"],
                latency_ms=told["latency_ms"],
            )
            with suppress(Conflict, NotFound):
                await self._desk.report(tenant, run_id, intent.idempotency_key, intent.holder, result)

    def unfinished(self) -> Mapping[int, Doubt]:
        """The calls that an earlier attempt began and of which no result was saved."""
        return {
            intent.index: Doubt(
                begun_at_ms=intent.begun_at_ms,
                holder=intent.holder,
                attempt=intent.attempt,
                idempotency_key=intent.idempotency_key,
            )
            for intent in self._record.journal
            if intent.attempt != self._fence.attempt
        }

    def _spent_with_lease(self) -> Set[int]:
        """The calls that were journalled in the very commit that took the lease."""
        return {intent.index for intent in self._record.journal if intent.attempt == self._fence.attempt}


def plan_call(record: SuspensionRecord, fence: Fence, planned: PlannedCall, step: int) -> Intent:
    """Return what the journal is told of a call about to start."""
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
    )


def seal(state: BaseModel) -> SealedState:
    """Return a state on its way to the store."""
    return seal_state(state.model_dump_json().encode())


def tell_outcomes(record: SuspensionRecord, checked: Recheck, now_ms: int) -> Mapping[int, Resumption]:
    """Return what a run is told of all that it asked, by call index."""
    return {item.index: _tell_outcome(item, checked.denied.get(item.index), now_ms) for item in record.items}


def ask_in(batch: Batch, checked: Recheck) -> Batch:
    """Return the batch with the questions that are asked again in the place of the old ones."""
    calls = [
        one.model_copy(update={"ask": checked.again[one.call.index]}) if one.call.index in checked.again else one
        for one in batch.calls
    ]
    return batch.model_copy(update={"calls": tuple(calls)})


def _tell_outcome(item: Item, denied: str | None, now_ms: int) -> Resumption:
    """Return what a run is told of an item; leave that was not used in time is no leave."""
    outcome = item.outcome
    assert outcome is not None  # noqa: S101  only decided suspensions are leased
    if denied is not None:
        outcome = outcome.model_copy(update={"verdict": Verdict.DENIED, "message": denied})
    if outcome.may_run and now_ms >= item.start_by_ms and item.permit is None:
        message = f"Approved, but not started before {iso_utc(item.start_by_ms)}; ask again."
        outcome = outcome.model_copy(update={"verdict": Verdict.DENIED, "message": message})
    return Resumption(item_id=item.item_id, outcome=outcome, args=approved_args(item))
