"""Let workers drive: take a run up, spend its permits, save how far it has come, pause or end it, give it back.

These verbs are the desk's own (`service/desk/desk.py`), for whoever holds a run's lease; each names it by its fence.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

from sayso.clock import new_id
from sayso.errors import Conflict, Frozen, Unavailable
from sayso.records.events import Event
from sayso.records.freezes import Freeze
from sayso.records.items import ItemDraft
from sayso.records.run_state import SealedState
from sayso.records.suspensions import Change, Intent, Origin, ResumeSpec, RunEnd, RunRef, Status, SuspensionRecord
from sayso.records.tool_calls import ToolResult
from sayso.transitions.deciding import report
from sayso.transitions.execution import (
    Fence,
    checkpoint,
    lease,
    note_results,
    postpone,
    redeem,
    release,
    renew,
    return_permits,
    settle,
    suspend_again,
)
from sayso.transitions.freezing import check_start, doubt_time, shift_deadlines, tools_to_start
from service.store.runs.runs import Runs
from service.store.suspensions.saving import Saved, Suspensions, Verb

Plan = Callable[[SuspensionRecord, Fence, int], tuple[Intent, ...]]
"""Which calls a worker that leases a run will start before it does anything else; a plain function of the record."""


def plan_nothing(_record: SuspensionRecord, _fence: Fence, _now_ms: int) -> tuple[Intent, ...]:
    """Plan no calls: what comes first is not known yet."""
    return ()


KnownFreezes = Callable[[bool], Awaitable[tuple[Freeze, ...]]]
"""What is frozen, and what was; asked with True it looks for itself."""


async def know_no_freezes(_fresh: bool) -> tuple[Freeze, ...]:
    """Know of no freezes: for a desk on which nobody can make one."""
    return ()


def be_sure_for_ever() -> int:
    """Never doubt what is known to be frozen: where nobody can freeze anything."""
    return 0


class Sure(NamedTuple):
    """What is known to be frozen, and until when something may start by that; 0 is for ever."""

    freezes: tuple[Freeze, ...]
    until_ms: int

    def bind(self, verb: Verb) -> Verb:
        """Let a verb be applied and saved only in that time, however long its process is held up on the way."""

        def take(record: SuspensionRecord, now_ms: int) -> Change:
            if self.until_ms and now_ms > self.until_ms:
                raise Unavailable("It took too long to find out what is frozen; nothing was changed. Try again.")
            return verb(record, now_ms)._replace(until_ms=self.until_ms)

        return take


class Leases:
    """What a worker does with the run it drives."""

    def __init__(
        self,
        suspensions: Suspensions,
        runs: Runs,
        freezes: KnownFreezes = know_no_freezes,
        sure_until_ms: Callable[[], int] = be_sure_for_ever,
    ) -> None:
        self.suspensions = suspensions
        self.runs = runs
        self._freezes = freezes
        self._sure_until_ms = sure_until_ms

    async def lease(
        self,
        suspension_id: str,
        holder: str,
        lease_ms: int,
        plan: Plan = plan_nothing,
        job_id: str | None = None,
        step_id: str = "",
        packed: bytes = b"",
    ) -> Saved:
        """Take a decided run up; raises `LeaseHeld`, `IllegalTransition` or `Frozen` when it is not to be had.

        With the `step_id` of an earlier try whose reply was lost, the lease it took is found again by its name.
        `plan` says which calls the worker will start first; their permits are spent in the same commit where they can.
        `job_id` is noted on the receipt. With the `packed` record from the ready list it is tried without a look.
        """

        def begin(record: SuspensionRecord, now_ms: int, freezes: tuple[Freeze, ...]) -> Change:
            freezes = doubt_time(freezes, self.suspensions.mark_ms(), now_ms)
            check_start(freezes, record, tools_to_start(record), now_ms)
            back = shift_deadlines(record, freezes, now_ms) if freezes else Change(record)
            taken = lease(back.record, holder, lease_ms, now_ms, job_id, step_id)
            taken = Change(taken.record, back.events + taken.events)
            if taken.record is back.record or taken.record.lease is None:
                return taken
            fence = Fence(holder, taken.record.lease.attempt, lease_ms)
            intents = plan(taken.record, fence, now_ms)
            if not intents:
                return taken
            begun = tuple(intent.model_copy(update={"begun_at_ms": now_ms}) for intent in intents)
            try:
                spent = redeem(taken.record, fence, begun, (), now_ms)
            except Conflict:
                return taken  # the worker meets the same refusal at its own first step, and shows it
            return Change(spent.record, taken.events + spent.events)

        async def step(known: Sure) -> Saved:
            taking = _once(
                Fence(holder, 0, lease_ms, step_id), lambda record, now_ms: begin(record, now_ms, known.freezes)
            )
            recalled = self.suspensions.recall_packed(suspension_id, packed) if packed else None
            return await self.suspensions.change(suspension_id, known.bind(taking), known=recalled)

        return await self._unless_frozen(step)

    async def renew(self, suspension_id: str, fence: Fence) -> Saved:
        """Hold the lease for another while."""
        return await self.suspensions.change(suspension_id, lambda record, now_ms: renew(record, fence, now_ms))

    async def redeem(
        self,
        suspension_id: str,
        fence: Fence,
        intents: tuple[Intent, ...],
        events: tuple[Event, ...],
        state: SealedState | None,
        known: Saved | None = None,
    ) -> Saved:
        """Journal the calls about to start and spend their permits; only after this may a tool run.

        Raises `Frozen` when one of them, their agent or everything is frozen.

        `known` is what the worker saved last: with it, its next step need not look first.
        """

        tools = tuple(intent.tool for intent in intents)

        def spend(record: SuspensionRecord, now_ms: int, freezes: tuple[Freeze, ...]) -> Change:
            freezes = doubt_time(freezes, self.suspensions.mark_ms(), now_ms)
            check_start(freezes, record, tools, now_ms)
            begun = tuple(intent.model_copy(update={"begun_at_ms": now_ms}) for intent in intents)
            if state is None:
                return redeem(record, fence, begun, events, now_ms)
            saved = checkpoint(record, fence, state, events, now_ms)
            spent = redeem(saved.record, fence, begun, (), now_ms)
            return Change(spent.record, saved.events + spent.events, state=state)

        async def step(sure: Sure) -> Saved:
            spending = _once(fence, lambda record, now_ms: spend(record, now_ms, sure.freezes))
            return await self.suspensions.change(suspension_id, sure.bind(spending), known=known)

        return await self._unless_frozen(step)

    async def checkpoint(
        self,
        suspension_id: str,
        fence: Fence,
        state: SealedState,
        events: tuple[Event, ...],
        known: Saved | None = None,
    ) -> Saved:
        """Save how far the run has come."""
        return await self.suspensions.change(
            suspension_id,
            _once(fence, lambda record, now_ms: checkpoint(record, fence, state, events, now_ms)),
            known=known,
        )

    async def note_results(
        self,
        suspension_id: str,
        fence: Fence,
        results: Mapping[int, ToolResult],
        known: Saved | None = None,
    ) -> Saved:
        """Save how calls ended while others of their batch still run."""
        return await self.suspensions.change(
            suspension_id, lambda record, now_ms: note_results(record, fence, results, now_ms), known=known
        )

    async def suspend_again(
        self,
        leased: SuspensionRecord,
        fence: Fence,
        drafts: tuple[ItemDraft, ...],
        state: SealedState,
        events: tuple[Event, ...],
        step: int,
    ) -> Saved:
        """Pause a driven run again: what it asks is saved in the commit that ends this pause."""
        draft = draft_suspension(leased.tenant, leased.run, on_deny=leased.on_deny, state=state, step=step)
        draft = draft.model_copy(update={"origin": leased.origin, "resume": leased.resume})
        return await self.suspensions.change(
            leased.id,
            _once(fence, lambda record, now_ms: suspend_again(record, fence, draft, drafts, state, events, now_ms)),
        )

    async def settle(
        self,
        suspension_id: str,
        fence: Fence,
        end: RunEnd,
        events: tuple[Event, ...],
        known: Saved | None = None,
    ) -> Saved:
        """End the run."""
        return await self.suspensions.change(
            suspension_id,
            _once(fence, lambda record, now_ms: settle(record, fence, end, events, now_ms)),
            known=known,
        )

    async def return_permits(
        self, suspension_id: str, fence: Fence, unused: Collection[int], known: Saved | None = None
    ) -> Saved:
        """Return the permits of calls that were about to start and never began."""
        return await self.suspensions.change(
            suspension_id,
            _once(fence, lambda record, now_ms: return_permits(record, fence, unused, now_ms)),
            known=known,
        )

    async def postpone(self, suspension_id: str, fence: Fence, error: str, *, is_final: bool = False) -> Saved:
        """Put a resume that could not go on back, visibly; the last attempt, or a final error, gives the run up."""
        return await self.suspensions.change(
            suspension_id, lambda record, now_ms: postpone(record, fence, error, now_ms, is_final=is_final)
        )

    async def release(self, suspension_id: str, fence: Fence, reason: str, waits_for: tuple[str, ...] = ()) -> Saved:
        """Give a driven run back, so that any worker may take it up at once, or once its tools are not frozen."""
        return await self.suspensions.change(
            suspension_id, lambda record, now_ms: release(record, fence, reason, now_ms, waits_for)
        )

    async def report(self, run_id: str, key: str, holder: str, result: ToolResult) -> Saved:
        """Take a result that came after its worker had lost the run: it lifts the doubt about its call, if any."""
        run = await self.runs.read(run_id)
        return await self.suspensions.change(
            run.suspension_id, lambda record, now_ms: report(record, key, holder, result, now_ms)
        )

    async def _unless_frozen(self, step: Callable[[Sure], Awaitable[Saved]]) -> Saved:
        """Take a step with what is known to be frozen; before it is refused for that, look whether it still is."""
        try:
            return await step(await self._know())
        except Frozen:
            return await step(await self._know(fresh=True))

    async def _know(self, *, fresh: bool = False) -> Sure:
        freezes = await self._freezes(fresh)
        return Sure(freezes, self._sure_until_ms())


def _once(fence: Fence, verb: Verb) -> Verb:
    """Let a worker send a step again whose reply was lost, whatever was saved since: the lease knows its last step.

    The commit's own id does not tell, when the clock or a renewal has committed meanwhile.
    """

    def take(record: SuspensionRecord, now_ms: int) -> Change:
        if fence.step and record.lease is not None and record.lease.step == fence.step:
            return Change(record)
        return verb(record, now_ms)

    return take


def draft_suspension(
    tenant: str, run: RunRef, *, state: SealedState | None, on_deny: str = "continue", step: int = 0
) -> SuspensionRecord:
    """Return a suspension that is not saved yet; the verb sets its status and its times."""
    return SuspensionRecord.model_validate(
        {
            "id": new_id("sus"),
            "tenant": tenant,
            "status": Status.PENDING,
            "created_at_ms": 0,
            "updated_at_ms": 0,
            "run": run,
            "step": step,
            "origin": Origin(),
            "resume": ResumeSpec(),
            "on_deny": on_deny,
            "state": state.ref if state else None,
        }
    )
