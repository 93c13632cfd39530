"""Let workers execute runs under a lease, whose fence names it; hand runs to workers, and take them back."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sayso.core.clock import new_number
from sayso.core.policy.engine import Policy
from sayso.core.records.events import Event
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import ItemDraft, assign_numbers
from sayso.core.records.run_state import SealedState
from sayso.core.records.suspensions import Change, Intent, RunEnd, SuspensionRecord
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.deciding import report
from sayso.core.transitions.execution import (
    Fence,
    checkpoint,
    forget_start,
    hand_over,
    lease,
    note_results,
    postpone,
    redeem,
    release,
    renew,
    return_permits,
    settle,
    suspend_again,
    take_back,
)
from sayso.core.transitions.freezing import check_start, shift_deadlines, tools_to_start
from sayso.errors import Conflict, Frozen
from service.core.desk.changes import Changes, draft_following
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.saving import Saved, Verb

Plan = Callable[[SuspensionRecord, Fence, int], tuple[Intent, ...]]
"""Returns the calls that a worker starts first after it leases the run; a plain function of the record."""


def plan_nothing(_record: SuspensionRecord, _fence: Fence, _now_ms: int) -> tuple[Intent, ...]:
    """Plan no calls."""
    return ()


@dataclass(frozen=True)
class WorkerExecution:
    """Operations of the worker that executes a run; with `known`, what it saved last, no look-up is needed first."""

    changes: Changes
    runs: Runs

    async def lease(
        self,
        suspension_id: str,
        holder: str,
        lease_ms: int,
        plan: Plan = plan_nothing,
        job_id: str | None = None,
        step_id: str = "",
        known: Saved | None = None,
    ) -> Saved:
        """Lease a decided run; raises `LeaseHeld`, `IllegalTransition` or `Frozen`.

        With the `step_id` of an attempt whose reply was lost, returns its lease. The commit redeems the permits of the
        planned calls where possible. With the `known` record from the ready list no look-up is needed.
        """

        def begin(record: SuspensionRecord, now_ms: int, freezes: tuple[Freeze, ...]) -> Change:
            if _is_repeated(record, Fence(holder, 0, lease_ms, step_id)):
                return Change(record)
            freezes = self.changes.doubt_time(freezes, now_ms)
            check_start(freezes, record, tools_to_start(record), now_ms)
            shifted = shift_deadlines(record, freezes, now_ms) if freezes else Change(record)
            leased = lease(shifted.record, holder, lease_ms, now_ms, job_id, step_id)
            leased = Change(leased.record, shifted.events + leased.events)
            if leased.record is shifted.record or leased.record.lease is None:
                return leased
            fence = Fence(holder, leased.record.lease.attempt, lease_ms)
            intents = plan(leased.record, fence, now_ms)
            if not intents:
                return leased
            try:
                check_start(freezes, leased.record, [intent.tool for intent in intents], now_ms)
                redeemed = redeem(leased.record, fence, _stamp(intents, now_ms), (), now_ms)
            except Conflict:
                return leased  # the worker's own first operation raises it again, and reports it
            return Change(redeemed.record, leased.events + redeemed.events)

        return await self.changes.start(suspension_id, begin, known)

    async def renew(self, suspension_id: str, fence: Fence) -> Saved:
        return await self.changes.change(suspension_id, lambda record, now_ms: renew(record, fence, now_ms))

    async def redeem(
        self,
        suspension_id: str,
        fence: Fence,
        intents: tuple[Intent, ...],
        events: tuple[Event, ...],
        state: SealedState | None,
        known: Saved | None = None,
    ) -> Saved:
        """Journal the calls about to start and redeem their permits; only then may they start. Raises `Frozen`."""
        tools = tuple(intent.tool for intent in intents)

        def begin(record: SuspensionRecord, now_ms: int, freezes: tuple[Freeze, ...]) -> Change:
            if _is_repeated(record, fence):
                return Change(record)
            check_start(self.changes.doubt_time(freezes, now_ms), record, tools, now_ms)
            if state is None:
                return redeem(record, fence, _stamp(intents, now_ms), events, now_ms)
            saved = checkpoint(record, fence, state, events, now_ms)
            redeemed = redeem(saved.record, fence, _stamp(intents, now_ms), (), now_ms)
            return Change(redeemed.record, saved.events + redeemed.events, state=state)

        return await self.changes.start(suspension_id, begin, known)

    async def checkpoint(
        self,
        suspension_id: str,
        fence: Fence,
        state: SealedState,
        events: tuple[Event, ...],
        known: Saved | None = None,
    ) -> Saved:
        return await self._change_once(
            suspension_id, fence, lambda record, now_ms: checkpoint(record, fence, state, events, now_ms), known
        )

    async def note_results(
        self, suspension_id: str, fence: Fence, results: Mapping[int, ToolResult], known: Saved | None = None
    ) -> Saved:
        """Save the results of calls while others of their batch still run."""
        return await self.changes.change(
            suspension_id, lambda record, now_ms: note_results(record, fence, results, now_ms), known=known
        )

    async def return_permits(
        self, suspension_id: str, fence: Fence, unused: Collection[int], known: Saved | None = None
    ) -> Saved:
        return await self._change_once(
            suspension_id, fence, lambda record, now_ms: return_permits(record, fence, unused, now_ms), known
        )

    async def suspend_again(
        self,
        leased: SuspensionRecord,
        fence: Fence,
        drafts: tuple[ItemDraft, ...],
        state: SealedState,
        events: tuple[Event, ...],
        step: int,
        known: Saved | None = None,
    ) -> Saved:
        """Suspend a leased run again; one commit ends this suspension and saves the next."""
        draft = draft_following(leased, state, step)
        suspensions = self.changes.suspensions
        marked = await suspensions.revisions.mark(await suspensions.sampling.draw(drafts, draft.run), draft.run)
        numbered = assign_numbers(marked, new_number)
        return await self._change_once(
            leased.id,
            fence,
            lambda record, now_ms: suspend_again(record, fence, draft, numbered, state, events, now_ms),
            known,
        )

    async def settle(
        self, suspension_id: str, fence: Fence, end: RunEnd, events: tuple[Event, ...], known: Saved | None = None
    ) -> Saved:
        return await self._change_once(
            suspension_id, fence, lambda record, now_ms: settle(record, fence, end, events, now_ms), known
        )

    async def postpone(self, suspension_id: str, fence: Fence, error: str, *, is_final: bool = False) -> Saved:
        """Give a run back after an error; the last attempt, or a final error, fails it."""
        return await self.changes.change(
            suspension_id, lambda record, now_ms: postpone(record, fence, error, now_ms, is_final=is_final)
        )

    async def release(self, suspension_id: str, fence: Fence, reason: str, waits_for: tuple[str, ...] = ()) -> Saved:
        """Release the lease, so that any worker can lease the run: at once, or when its tools are no longer frozen."""
        return await self.changes.change(
            suspension_id, lambda record, now_ms: release(record, fence, reason, now_ms, waits_for)
        )

    async def report(self, run_id: str, key: str, holder: str, result: ToolResult) -> Saved:
        """Record a result that came after its worker lost the lease; it resolves the doubt about its call."""
        run = await self.runs.read(run_id)
        return await self.changes.change(
            run.suspension_id, lambda record, now_ms: report(record, key, holder, result, now_ms)
        )

    async def _change_once(self, suspension_id: str, fence: Fence, verb: Verb, known: Saved | None = None) -> Saved:
        return await self.changes.change(
            suspension_id,
            lambda record, now_ms: Change(record) if _is_repeated(record, fence) else verb(record, now_ms),
            known=known,
        )


def _stamp(intents: tuple[Intent, ...], now_ms: int) -> tuple[Intent, ...]:
    return tuple(intent.model_copy(update={"begun_at_ms": now_ms}) for intent in intents)


def _is_repeated(record: SuspensionRecord, fence: Fence) -> bool:
    """Return whether this operation is saved, and only its reply was lost: the lease names its last operation."""
    return bool(fence.step) and record.lease is not None and record.lease.step == fence.step


@dataclass(frozen=True)
class Handing:
    """Operations on runs that a decision hands to a worker."""

    changes: Changes
    policy: Callable[[], Policy]

    async def prepare(self) -> None:
        """Find out which workers wait, before a run gets ready."""
        await self.changes.suspensions.waiting.look()

    def hand_on(self, verb: Verb, freezes: tuple[Freeze, ...]) -> Verb:
        """Return the transition with its ready run handed to a waiting worker, if what is frozen is known."""
        until_ms, counts = self.changes.sure_until_ms(), self.changes.suspensions.counts
        epoch = counts.epoch

        def handing(record: SuspensionRecord, now_ms: int) -> Change:
            change = verb(record, now_ms)
            worker = self.changes.suspensions.waiting.choose() if change.ready else None
            late = bool(until_ms) and now_ms > until_ms
            late = late or not counts.settled or epoch != counts.epoch
            if worker is None or late or self.changes.doubt_time(freezes, now_ms) or self.policy().remembering:
                return change
            handed = hand_over(change, worker, now_ms)
            return handed._replace(until_ms=until_ms) if handed.handed_to else change

        return handing

    async def may_start(self, record: SuspensionRecord, now_ms: int) -> bool:
        """Whether a handed run may still start: nothing of it is frozen, and its permits are not over."""
        freezes, leased = self.changes.doubt_time(await self.changes.freezes(), now_ms), forget_start(record)
        try:
            check_start(freezes, leased, tools_to_start(leased), now_ms)
        except Frozen:
            return False
        return all(now_ms < item.start_by_ms for item in record.items if item.permit is not None)

    async def take_back(self, record: SuspensionRecord) -> Saved | None:
        """Put a handed run that its worker never got on the ready list; None if it has moved on."""
        held = record.lease
        assert held is not None  # noqa: S101  a handed run is leased
        fence = Fence(held.holder, held.attempt, 0)
        try:
            return await self.changes.change(record.id, lambda current, now_ms: take_back(current, fence, now_ms))
        except Conflict:
            return None
