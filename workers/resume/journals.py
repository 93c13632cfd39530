"""Keep a run's journal on its suspension, through the desk: what is about to start, and what came of it."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import structlog
from pydantic import BaseModel

from sayso.canonical_json import JsonObject
from sayso.clock import iso_utc, monotonic_ms
from sayso.errors import Conflict, NotFound, Unavailable, Withdrawn
from sayso.records.decisions import Verdict
from sayso.records.events import Event, EventType
from sayso.records.items import Doubt, Item
from sayso.records.run_state import SealedState, seal_state
from sayso.records.suspensions import Intent, Origin, RunEnd, SuspensionRecord
from sayso.records.tool_calls import ToolResult
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, PlannedCall, Resumption, is_small
from sayso.runner.execution import plan_intent
from sayso.runner.protocol import FrameworkState
from sayso.runner.revalidation import Revalidation
from sayso.runner.transcripts import RunState
from sayso.transitions.execution import Fence, approved_args
from sayso.transitions.in_doubt import doubt_intent
from service.store.suspensions.saving import Saved
from service.wiring import Wiring
from workers.resume.notes import Left, find_notes, hear_out, never_started, result_of
from workers.resume.outages import next_step, report_late, through_outages

log = structlog.get_logger()


def find_agent(agents: Mapping[str, Agent], record: SuspensionRecord) -> Agent:
    """Return the registered agent of the record's run; raises `NotFound`, naming those there are."""
    if record.run.agent in agents:
        return agents[record.run.agent]
    known = ", ".join(sorted(agents)) or "none"
    raise NotFound(f"This worker has no agent named {record.run.agent!r}; registered are: {known}.")


class DeskJournal:
    """The run's journal, kept on its suspension through the desk; every step of it is fenced by the lease."""

    def __init__(
        self, wiring: Wiring, leased: Saved, fence: Fence, left: Mapping[str, Left | None] = MappingProxyType({})
    ) -> None:
        self._desk = wiring.desk
        self._standings = wiring.revocation_cache
        self._record = leased.record
        self._saved = leased
        self._fence = fence
        self._begun: tuple[Intent, ...] = ()
        self._lost = False
        self._notes = find_notes(fence.holder)
        self._earlier = _begun_earlier(leased.record, fence)
        self._left = left
        self._in_vain = {one.index: one.attempt for one in self._earlier if self._was_in_vain(one, leased.now_ms)}

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: RunState | FrameworkState | None
    ) -> Mapping[int, str]:
        """Write down which calls are about to start; return the idempotency key of each by its index.

        Raises `Withdrawn` once the key that asked for the run is revoked.
        """
        step = state.step if state is not None else self._record.step
        spent = self._spent_with_lease()
        if not events and state is None and spent.keys() == {one.call.index for one in calls}:
            self._begun = tuple(spent.values())
            return {index: intent.idempotency_key for index, intent in spent.items()}
        planned = (plan_intent(self._record, self._fence, one, step) for one in calls)
        intents = tuple(one.model_copy(update={"in_vain": self._in_vain.get(one.index)}) for one in planned)
        sealed = seal(state) if state is not None else None
        await self._check_revocations()
        suspension_id, fence = self._record.id, next_step(self._fence)
        self._saved = await through_outages(
            lambda: self._desk.redeem(suspension_id, fence, intents, tuple(events), sealed, self._saved)
        )
        self._begun = intents
        return {intent.index: intent.idempotency_key for intent in intents}

    async def _check_revocations(self) -> None:
        revocations = await through_outages(self._standings.find)
        if (withdrawn := revocations.find_withdrawal(self._record.run)) is not None:
            raise Withdrawn(withdrawn)

    async def confirm(self) -> None:
        """Renew the lease where it may have run out unnoticed, in a process that was stopped.

        Raises `Conflict` where another attempt has the run by now: it may have asked a person, who said not to run it.
        """
        if monotonic_ms() >= _end_of_lease_ms(self._saved):
            suspension_id = self._record.id
            self._saved = await through_outages(lambda: self._desk.renew(suspension_id, self._fence))

    def note_start(self, key: str) -> None:
        """Leave word on this machine that a call starts."""
        if self._notes is not None:
            self._notes.note_start(self._fence.attempt, key)

    def note_end(self, key: str, result: ToolResult) -> None:
        """Leave word on this machine of how a call ended."""
        if self._notes is not None:
            self._notes.note_end(self._fence.attempt, key, result)

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        """Save how calls ended while others of their batch still run; when it is too late for that, report it.

        What is large, or cannot be saved now, is saved or reported with its batch.
        """
        suspension_id = self._record.id
        small = {index: result for index, result in results.items() if is_small(result)}
        if small and not self._lost:
            try:
                self._saved = await through_outages(
                    lambda: self._desk.note_results(suspension_id, self._fence, small, self._saved)
                )
            except Unavailable as away:
                log.warning("results_not_noted", suspension=suspension_id, why=away.message)
            except Conflict:
                self._lost = True
        if self._lost:
            await self._report_late(results)

    async def return_permits(self, unused: Collection[int]) -> None:
        """Return the permits of calls that never began, by index."""
        suspension_id, fence = self._record.id, next_step(self._fence)
        self._saved = await through_outages(
            lambda: self._desk.return_permits(suspension_id, fence, unused, self._saved)
        )
        self._begun = tuple(one for one in self._begun if one.index not in unused)

    async def checkpoint(self, state: RunState | FrameworkState, events: Sequence[Event]) -> None:
        """Save how far the run has come; when it is too late for that, report at least what the calls came to."""
        suspension_id, fence = self._record.id, next_step(self._fence)
        sealed = seal(state)
        try:
            self._saved = await through_outages(
                lambda: self._desk.checkpoint(suspension_id, fence, sealed, tuple(events), self._saved)
            )
        except (Conflict, Unavailable):
            await self._report_late(self._results_in(events))
            raise
        self._begun = ()

    async def settle(self, end: RunEnd, events: Sequence[Event]) -> None:
        """End the run; when it is too late for that, report at least what its calls came to."""
        suspension_id, fence = self._record.id, next_step(self._fence)
        try:
            await through_outages(lambda: self._desk.settle(suspension_id, fence, end, tuple(events), self._saved))
        except (Conflict, Unavailable):
            await self._report_late(self._results_in(events))
            raise

    def _results_in(self, events: Sequence[Event]) -> Mapping[int, ToolResult]:
        """Read back what events tell of the calls that were begun."""
        told = {event.data["index"]: event.data for event in events if event.type is EventType.TOOL_COMPLETED}
        return {intent.index: read_result(intent, told[intent.index]) for intent in self._begun}

    async def _report_late(self, results: Mapping[int, ToolResult]) -> None:
        """Another attempt has the run by now, and may be asking a person whether these very calls have run."""
        for intent in self._begun:
            if intent.index in results:
                await report_late(self._desk, self._record, intent, results[intent.index])

    def started_before(self) -> bool:
        """Whether an earlier attempt began the saved batch."""
        return bool(self._earlier)

    def finished(self) -> Mapping[int, ToolResult]:
        """The results that an earlier attempt saved, or left word of, of calls whose batch it did not finish."""
        found = {intent.index: intent.result or self._result_left(intent) for intent in self._earlier}
        return {index: result for index, result in found.items() if result is not None}

    def _result_left(self, intent: Intent) -> ToolResult | None:
        left = self._left.get(intent.holder)
        return result_of(left, intent) if left is not None else None

    def _was_in_vain(self, intent: Intent, now_ms: int) -> bool:
        """Whether a call never began, and may begin now: its worker was killed first, and says so itself."""
        left = self._left.get(intent.holder)
        if left is None or intent.idempotent or intent.result is not None or not never_started(left, intent):
            return False
        return all(now_ms < item.start_by_ms for item in self._record.items if item.item_id == intent.item_id)

    def unfinished(self) -> Mapping[int, Doubt]:
        """The calls that an earlier attempt began and of which no result is known."""
        finished = self.finished()
        return {
            intent.index: doubt_intent(intent)
            for intent in self._earlier
            if intent.index not in finished and intent.index not in self._in_vain
        }

    def _spent_with_lease(self) -> Mapping[int, Intent]:
        """The calls that were journalled in the very commit that took the lease, by index."""
        return {intent.index: intent for intent in self._record.journal if intent.attempt == self._fence.attempt}


async def open_journal(wiring: Wiring, leased: Saved, fence: Fence) -> DeskJournal:
    """Return the journal of a run that was taken up, once the workers before had time to say how its calls ended.

    Another framework starts its tools itself, and leaves no word of it: of those nothing is known.
    """
    own = leased.record.origin.framework == Origin().framework
    begun = _begun_earlier(leased.record, fence) if own else ()
    if not begun:
        return DeskJournal(wiring, leased, fence)
    return DeskJournal(wiring, leased, fence, await hear_out(wiring.settings.home, begun, fence.lease_ms))


def _begun_earlier(record: SuspensionRecord, fence: Fence) -> tuple[Intent, ...]:
    return tuple(one for one in record.journal if one.attempt != fence.attempt)


def _end_of_lease_ms(saved: Saved) -> float:
    """Until when the lease held for sure when this was saved, by this process's own clock."""
    lease = saved.record.lease
    return saved.sent_at_ms + lease.until_ms - saved.now_ms if lease is not None else 0.0


def read_result(intent: Intent, told: JsonObject) -> ToolResult:
    """Return what the event `tool_completed` tells of a call that was begun."""
    names = ("success", "output", "error", "latency_ms")
    return ToolResult.model_validate(
        {"call_id": intent.call_id, "tool_name": intent.tool, **{name: told[name] for name in names}}
    )


def seal(state: BaseModel) -> SealedState:
    """Return a state on its way to the store."""
    return seal_state(state.model_dump_json().encode())


def describe_outcomes(record: SuspensionRecord, checked: Revalidation, now_ms: int) -> Mapping[int, Resumption]:
    """Return what a run is told of all that it asked, by call index."""
    return {item.index: _describe_outcome(item, checked.denied.get(item.index), now_ms) for item in record.items}


def ask_in(batch: Batch, checked: Revalidation) -> Batch:
    """Return the batch with the questions that are asked again in the place of the old ones."""
    calls = [
        one.model_copy(update={"ask": checked.again[one.call.index]}) if one.call.index in checked.again else one
        for one in batch.calls
    ]
    return batch.model_copy(update={"calls": tuple(calls)})


def _describe_outcome(item: Item, denied: str | None, now_ms: int) -> Resumption:
    """Return what a run is told of an item; leave that was not used in time is no leave."""
    outcome = item.outcome
    assert outcome is not None  # noqa: S101  only decided suspensions are leased
    if denied is not None:
        outcome = outcome.model_copy(update={"verdict": Verdict.DENIED, "message": denied})
    if outcome.may_run and now_ms >= item.start_by_ms and item.permit is None:
        message = f"Approved, but not started before {iso_utc(item.start_by_ms)}; ask again."
        outcome = outcome.model_copy(update={"verdict": Verdict.DENIED, "message": message})
    return Resumption(item_id=item.item_id, outcome=outcome, args=approved_args(item))
