"""A run's journal on its suspension, kept through the desk, and the states of runs, found by their digests."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import structlog
from pydantic import BaseModel

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc, monotonic_ms
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.records.decisions import Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Doubt, Item, ItemDraft
from sayso.core.records.run_state import SealedState, StateRef, open_state, seal_state
from sayso.core.records.suspensions import OURS, Intent, OperatorNote, RunEnd, SuspensionRecord
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.permits import approved_args, doubt_intent
from sayso.errors import Conflict, NotFound, SaysoError, Unavailable, Withdrawn
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, BatchCall, PlannedCall, Resumption, is_small
from sayso.runner.execution import plan_intent
from sayso.runner.protocol import FrameworkState
from sayso.runner.revalidation import Revalidation
from sayso.runner.transcripts import RunState
from service.core.store.load import Starts, count_delay
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from workers.resume.notes import Noted, await_notes, find_notes, never_started, noted_result
from workers.resume.offers import make_offer, save_offer
from workers.resume.outages import next_step, report_late, through_outages

log = structlog.get_logger()


def find_agent(agents: Mapping[str, Agent], record: SuspensionRecord) -> Agent:
    """Return the registered agent of the record's run; raises `NotFound` with the registered names."""
    if record.run.agent in agents:
        return agents[record.run.agent]
    names = ", ".join(sorted(agents)) or "none"
    raise NotFound(
        f"This worker has no agent named {record.run.agent!r}; registered are: {names}. Add it to SAYSO_AGENTS."
    )


class DeskJournal:
    """Implements `sayso.runner.execution.Journal`; the lease fences every step."""

    def __init__(
        self,
        wiring: Wiring,
        leased: Saved,
        fence: Fence,
        unclaimed: set[int],
        noted: Mapping[str, Noted | None] = MappingProxyType({}),
    ) -> None:
        self._desk, self._revocations = wiring.desk, wiring.revocation_cache
        self._record, self._saved, self._fence, self._unclaimed = leased.record, leased, fence, unclaimed
        self._notes, self._noted = find_notes(fence.holder), noted
        self._earlier = _started_earlier(leased.record, fence)
        self._started: tuple[Intent, ...] = ()
        self._lost = False
        unstarted = (intent for intent in self._earlier if self._never_started(intent, leased.now_ms))
        self._never_ran = {intent.index: intent.attempt for intent in unstarted}

    async def recall(self, wanted: Collection[Wanted]) -> Readings:
        return await through_outages(lambda: self._desk.suspensions.recall(wanted))

    async def list_notes(self) -> Sequence[OperatorNote]:
        """Return the notes that no model has got: of the record as saved last, unless calls have run since."""
        if self._started:
            return (await through_outages(lambda: self._desk.suspensions.read(self._record.id))).record.waiting_notes
        return self._saved.record.waiting_notes

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: RunState | FrameworkState | None
    ) -> Mapping[int, str]:
        """Save which calls are about to start; raises `Withdrawn` if the key that requested the run is revoked."""
        step = state.step if state is not None else self._record.step
        begun = {intent.index: intent for intent in self._record.journal if intent.index in self._unclaimed}
        if begun and (state is not None or not begun.keys() <= {entry.call.index for entry in calls}):
            await self.return_unclaimed()
            begun = {}
        fresh = (entry for entry in calls if entry.call.index not in begun)
        planned = [plan_intent(self._record, self._fence, entry, step) for entry in fresh]
        intents = tuple(intent.model_copy(update={"in_vain": self._never_ran.get(intent.index)}) for intent in planned)
        if intents or events or not begun:
            sealed = seal(state) if state is not None else None
            revocations = await through_outages(self._revocations.find)
            if (withdrawn := revocations.find_withdrawal(self._record.run)) is not None:
                raise Withdrawn(withdrawn)
            await self._commit(self._desk.redeem, intents, tuple(events), sealed)
        self._unclaimed.clear()
        self._started = (*begun.values(), *intents)
        return {intent.index: intent.idempotency_key for intent in self._started}

    async def confirm(self) -> None:
        """Renew the lease if it may have run out; raises `Conflict` if another attempt holds the run."""
        lease = self._saved.record.lease
        if lease is None or monotonic_ms() >= self._saved.sent_at_ms + lease.until_ms - self._saved.now_ms:
            self._saved = await through_outages(lambda: self._desk.renew(self._record.id, self._fence))

    def note_start(self, key: str) -> None:
        if self._notes is not None:
            self._notes.note_start(self._fence.attempt, key)

    def note_end(self, key: str, result: ToolResult) -> None:
        if self._notes is not None:
            self._notes.note_end(self._fence.attempt, key, result)

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        """Save small results while others run, or report them if the lease is lost; the rest goes with the batch."""
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

    async def offer_undo(self, agent: Agent, calls: Sequence[BatchCall]) -> Sequence[Event]:
        """Let people undo calls that ran under a veto. The ids of the offers follow from the keys of the calls."""
        keys = {intent.index: intent.idempotency_key for intent in (*self._earlier, *self._started)}
        at_ms, events = self._saved.estimate_ms(), []
        for entry in calls:
            doubt = entry.ask.doubt if entry.ask is not None else None
            key = doubt.idempotency_key if doubt is not None else keys[entry.call.index]
            offer = make_offer(agent, self._record, entry, key, at_ms)
            events.append(await through_outages(partial(save_offer, self._desk, offer)))
        return events

    async def return_permits(self, unused: Collection[int]) -> None:
        await self._commit(self._desk.return_permits, unused)
        self._started = tuple(intent for intent in self._started if intent.index not in unused)

    async def return_unclaimed(self) -> None:
        """Return the permits that were redeemed with the lease, if their calls have not been started since."""
        if self._unclaimed:
            await self._commit(self._desk.return_permits, frozenset(self._unclaimed))
            self._unclaimed.clear()

    async def checkpoint(self, state: RunState | FrameworkState, events: Sequence[Event]) -> None:
        """Save the state, or report the results if the lease is lost."""
        await self.return_unclaimed()
        await self._commit_results(self._desk.checkpoint, seal(state), tuple(events))
        self._started = ()

    async def settle(self, end: RunEnd, events: Sequence[Event]) -> None:
        """End the run, or report the results if the lease is lost."""
        await self.return_unclaimed()
        await self._commit_results(self._desk.settle, end, tuple(events))

    async def suspend_again(
        self,
        record: SuspensionRecord,
        drafts: tuple[ItemDraft, ...],
        state: BaseModel,
        events: tuple[Event, ...],
        step: int,
    ) -> SealedState:
        """End the suspension and save the run's next one, with run and progress of `record`. Return its state."""
        await self.return_unclaimed()
        fence, sealed = next_step(self._fence), seal(state)
        desk = self._desk
        self._saved = await through_outages(
            lambda: desk.suspend_again(record, fence, drafts, sealed, events, step, self._saved)
        )
        return sealed

    async def _commit(self, step: Callable[..., Awaitable[Saved]], *details: object) -> None:
        fence = next_step(self._fence)
        self._saved = await through_outages(lambda: step(self._record.id, fence, *details, self._saved))

    async def _commit_results(
        self, step: Callable[..., Awaitable[Saved]], saved: SealedState | RunEnd, events: tuple[Event, ...]
    ) -> None:
        try:
            await self._commit(step, saved, events)
        except (Conflict, Unavailable):
            completed = {event.data["index"]: event.data for event in events if event.type is EventType.TOOL_COMPLETED}
            results = {intent.index: read_result(intent, completed[intent.index]) for intent in self._started}
            await self._report_late(results)
            raise

    async def _report_late(self, results: Mapping[int, ToolResult]) -> None:
        """Report results to the attempt that holds the run; it may be asking a person about these calls."""
        for intent in self._started:
            if intent.index in results:
                await report_late(self._desk, self._record, intent, results[intent.index])

    def started_before(self) -> bool:
        return bool(self._earlier)

    def finished(self) -> Mapping[int, ToolResult]:
        """Return the results that an earlier attempt saved or noted."""
        results: dict[int, ToolResult] = {}
        for intent in self._earlier:
            noted = self._noted.get(intent.holder)
            result = intent.result or (noted_result(noted, intent) if noted is not None else None)
            if result is not None:
                results[intent.index] = result
        return results

    def _never_started(self, intent: Intent, now_ms: int) -> bool:
        """Whether the notes prove that a call never started, and it may still start now."""
        noted = self._noted.get(intent.holder)
        if noted is None or intent.idempotent or intent.result is not None or not never_started(noted, intent):
            return False
        return all(now_ms < item.start_by_ms for item in self._record.items if item.item_id == intent.item_id)

    def unfinished(self) -> Mapping[int, Doubt]:
        finished, charges = self.finished(), {item.item_id: item.charges for item in self._record.items}
        doubts: dict[int, Doubt] = {}
        for intent in self._earlier:
            if intent.index not in finished and intent.index not in self._never_ran:
                # what the call has added to counters when it was asked, or when it started
                held = intent.charges or charges.get(intent.item_id or "", ())
                doubts[intent.index] = doubt_intent(intent).model_copy(update={"charges": held})
        return doubts


async def open_journal(wiring: Wiring, leased: Saved, fence: Fence, unclaimed: set[int]) -> DeskJournal:
    """Return the journal of a leased run, after earlier workers of our own agents had time to note how calls ended.

    `unclaimed` are the indexes of calls whose permits were redeemed with the lease; it is emptied as they start.
    """
    own = leased.record.origin.framework == OURS
    started = _started_earlier(leased.record, fence) if own else ()
    noted = await await_notes(wiring.settings.home, started, fence.lease_ms) if started else {}
    return DeskJournal(wiring, leased, fence, unclaimed, noted)


def _started_earlier(record: SuspensionRecord, fence: Fence) -> tuple[Intent, ...]:
    return tuple(intent for intent in record.journal if intent.attempt != fence.attempt)


def read_result(intent: Intent, data: JsonObject) -> ToolResult:
    """Return the result in the data of a `tool_completed` event."""
    names = ("success", "output", "error", "latency_ms")
    return ToolResult.model_validate(
        {"call_id": intent.call_id, "tool_name": intent.tool, **{name: data[name] for name in names}}
    )


def seal(state: BaseModel) -> SealedState:
    """Serialise a state for the store."""
    return seal_state(state.model_dump_json().encode())


def describe_outcomes(record: SuspensionRecord, checked: Revalidation, now_ms: int) -> Mapping[int, Resumption]:
    """Return the outcomes of all items, by call index."""
    return {item.index: _describe_outcome(item, checked, now_ms) for item in record.items}


def ask_in(batch: Batch, checked: Revalidation) -> Batch:
    """Replace the drafts that are asked again."""
    calls = [entry.model_copy(update={"ask": checked.again.get(entry.call.index, entry.ask)}) for entry in batch.calls]
    return batch.model_copy(update={"calls": tuple(calls)})


def _describe_outcome(item: Item, checked: Revalidation, now_ms: int) -> Resumption:
    """Return the outcome of an item; an approval that was not used in time denies the call."""
    outcome = item.outcome
    assert outcome is not None  # noqa: S101  only decided suspensions are leased
    denied = checked.denied.get(item.index)
    if denied is not None:
        outcome = outcome.model_copy(update={"verdict": Verdict.DENIED, "message": denied})
    if outcome.may_run and now_ms >= item.start_by_ms and item.permit is None:
        message = f"Approved, but not started before {iso_utc(item.start_by_ms)}; ask again."
        outcome = outcome.model_copy(update={"verdict": Verdict.DENIED, "message": message})
    charges = checked.charges.get(item.index)
    return Resumption(item_id=item.item_id, outcome=outcome, args=approved_args(item), charges=charges)


_MOST = 512
_MOST_BYTES = 16 * 1024 * 1024  # limits of the states in memory: their number, and their bytes together


class ReadState(NamedTuple):
    """The JSON of a state, and the reference that it was read by."""

    ref: StateRef
    raw: bytes


class RunStates:
    """The states of one tenant's runs."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def keep(self, sealed: SealedState) -> None:
        """Keep a state that this worker saved; older ones make room."""
        digest, blob = sealed.ref.digest, sealed.blob
        self._bytes += len(blob) - len(self._held.pop(digest, b""))
        self._held[digest] = blob
        while len(self._held) > _MOST or self._bytes > _MOST_BYTES:
            self._bytes -= len(self._held.popitem(last=False)[1])

    def find(self, record: SuspensionRecord) -> ReadState | None:
        ref = record.state
        blob = self._held.get(ref.digest) if ref is not None else None
        return ReadState(ref, open_state(ref, blob)) if ref is not None and blob is not None else None

    async def read(self, record: SuspensionRecord) -> ReadState:
        """Return the state of a suspension; raises `InvalidInput` where it does not match its reference."""
        assert record.state is not None  # noqa: S101  a run of an agent is always saved with its state
        state = self.find(record)
        return state or ReadState(record.state, await self._runs.state(record.run.id, record.state))

    async def try_read(self, record: SuspensionRecord) -> ReadState | None:
        """Return the state of a suspension, or None where it cannot be read; a later read raises the reason."""
        try:
            return await self.read(record) if record.state is not None else None
        except SaysoError:
            return None


SAVED_EVERY_S = 1.0


class StartDelays:
    """The delays that are not yet in the store; a process that is killed loses those of the last second."""

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self._counts: Counter[str] = Counter()

    def note(self, record: SuspensionRecord, now_ms: int) -> None:
        """Count a run that begins now, at the store's time."""
        if record.receipt.enqueued_at_ms is not None:
            self._counts.update(count_delay(now_ms - record.receipt.enqueued_at_ms))

    async def save(self) -> None:
        """Add what was counted; a store that is away gets it the next time."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await self._starts.add(counts)
        except Unavailable:
            self._counts.update(counts)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        async def keep() -> None:
            while True:
                await asyncio.sleep(SAVED_EVERY_S)
                await self.save()

        keeping = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeping.cancel()
            await self.save()
