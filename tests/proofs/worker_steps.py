"""Steps of workers, in any order, in the desk and in the model."""

from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunEnd, RunStatus
from sayso.core.transitions.execution import Fence
from service.core.store.suspensions.saving import Saved
from tests.proofs.base_machine import BaseMachine
from tests.proofs.model import deciding, execution, timing
from tests.proofs.model.records import ItemModel, Refused, SuspensionModel
from tests.proofs.strategies import (
    BATCHES,
    FAULT,
    LATE,
    LEASE_MS,
    PLACES,
    RAN,
    RESULT,
    STATE,
    WORKERS,
    Tracked,
    build_doubt_drafts,
    build_draft,
    build_intents,
    build_item,
)
from tests.sayso.samples import person


class WorkerSteps(BaseMachine):
    """The rules of workers, and of redriving."""

    @precondition(lambda self: self.ready)
    @rule(worker=st.sampled_from(WORKERS), fault=FAULT)
    def take(self, worker: str, fault: str | None) -> None:
        (taken,) = self.wait(self.schedule.take(1))
        assert taken.id == self.ready.pop(0)
        tracked = next(one for one in self.tracked if one.id == taken.id)
        self.lease_tracked(tracked, worker, fault)

    @precondition(lambda self: self.with_status("decided", "resuming"))
    @rule(place=PLACES, worker=st.sampled_from(WORKERS), fault=FAULT)
    def lease(self, place: int, worker: str, fault: str | None) -> None:
        self.lease_tracked(self.pick(place, "decided"), worker, fault)

    def lease_tracked(self, tracked: Tracked, worker: str, fault: str | None) -> None:
        tracked.known = self.act(
            lambda: self.desk.lease(tracked.id, worker, LEASE_MS),
            lambda: execution.lease(tracked.suspension, worker, LEASE_MS, self.now),
            fault,
        )

    def drive(
        self,
        place: int,
        late: bool,
        fault: str | None,
        call: Callable[[Tracked, Fence], Coroutine[Any, Any, Saved]],
        predict: Callable[[SuspensionModel], object],
        check: Callable[[SuspensionModel], object] = lambda _: None,
        *,
        settles: bool = False,
        starts: bool = False,
    ) -> tuple[Tracked, Saved | None]:
        """Take a step with the current lease of a run, or with an earlier one."""
        tracked = self.pick(place, "resuming")
        fence = Fence(tracked.suspension.holder or "w1", tracked.suspension.attempt - late, LEASE_MS)

        def predict_fenced() -> None:
            if settles and (tracked.suspension.status, tracked.suspension.holder) == ("resumed", fence.holder):
                return  # an earlier attempt settled it, and its reply was lost
            if starts and timing.is_item_time_frozen(tracked.suspension):
                raise Refused("Frozen")
            execution.check_fence(tracked.suspension, (fence.holder, fence.attempt))
            check(tracked.suspension)
            execution.renew(tracked.suspension, LEASE_MS, self.now)
            predict(tracked.suspension)

        saved = self.act(lambda: call(tracked, fence), predict_fenced, fault)
        tracked.known = saved or tracked.known
        if tracked.suspension is tracked.suspension.run.suspensions[-1]:
            self.note_ready(tracked.id, tracked.suspension.run)
        return tracked, saved

    @precondition(lambda self: self.with_status("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def renew(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(place, late, fault, lambda tracked, fence: self.desk.renew(tracked.id, fence), lambda _: None)

    @precondition(lambda self: self.with_status("resuming"))
    @rule(place=PLACES, late=LATE, every=LATE, with_state=st.booleans(), fault=FAULT)
    def redeem(self, place: int, late: bool, every: bool, with_state: bool, fault: str | None) -> None:
        """Redeem the calls that may start, or all of them, as no real worker does."""

        def items(suspension: SuspensionModel) -> list[ItemModel]:
            return [item for item in suspension.items if every or item.may_run]

        def predict(suspension: SuspensionModel) -> None:
            if with_state:
                suspension.journal.clear()
            execution.redeem(suspension, items(suspension))

        self.drive(
            place,
            late,
            fault,
            lambda tracked, fence: self.desk.redeem(
                tracked.id,
                fence,
                build_intents(tracked, items(tracked.suspension), fence),
                (),
                STATE if with_state else None,
                known=tracked.known,
            ),
            predict,
            lambda suspension: execution.check_permits(items(suspension), self.now),
            starts=True,
        )

    @precondition(lambda self: any(tracked.suspension.journal for tracked in self.with_status("resuming")))
    @rule(place=PLACES, late=LATE, ended=st.sets(st.sampled_from([0, 1, execution.ALLOWED]), min_size=1), fault=FAULT)
    def note_results(self, place: int, late: bool, ended: set[int], fault: str | None) -> None:
        """Save results of some calls, started or not."""

        def predict(suspension: SuspensionModel) -> None:
            suspension.noted |= ended & suspension.journal

        results = dict.fromkeys(ended, RESULT)
        self.drive(
            place,
            late,
            fault,
            lambda tracked, fence: self.desk.note_results(tracked.id, fence, results, tracked.known),
            predict,
        )

    @precondition(lambda self: self.with_status("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def checkpoint(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(
            place,
            late,
            fault,
            lambda tracked, fence: self.desk.checkpoint(tracked.id, fence, STATE, RAN, tracked.known),
            execution.checkpoint,
        )

    @precondition(lambda self: self.with_status("resuming"))
    @rule(place=PLACES, late=LATE, batch=BATCHES, fault=FAULT)
    def suspend_again(self, place: int, late: bool, batch: list[dict[str, Any]], fault: str | None) -> None:
        """Suspend the run again: about calls in doubt, or about a new batch."""
        drafts: list[ItemDraft] = []

        async def call(tracked: Tracked, fence: Fence) -> Saved:
            drafts[:] = build_doubt_drafts(tracked) or [build_draft(at, drawn) for at, drawn in enumerate(batch)]
            leased = (await self.store.read(tracked.id)).record
            assert leased is not None
            return await self.desk.suspend_again(leased, fence, tuple(drafts), STATE, RAN, 1)

        def predict(suspension: SuspensionModel) -> None:
            execution.finish(suspension, None)
            deciding.start(suspension.run, [build_item(draft, self.now) for draft in drafts], self.now)

        tracked, _ = self.drive(place, late, fault, call, predict)
        run = tracked.suspension.run
        if (
            tracked.suspension.status == "resumed"
            and tracked.suspension.end is None
            and run.suspensions[-1] not in self.suspensions
        ):
            following = self.wait(self.store.read(tracked.id)).record
            assert following is not None
            self.track(str(following.following_id), run.suspensions[-1])
            self.note_ready(str(following.following_id), run)

    @precondition(lambda self: self.with_status("resuming"))
    @rule(place=PLACES, late=LATE, status=st.sampled_from(["completed", "degraded", "failed"]), fault=FAULT)
    def settle(self, place: int, late: bool, status: str, fault: str | None) -> None:
        end = RunEnd(status=RunStatus(status))
        self.drive(
            place,
            late,
            fault,
            lambda tracked, fence: self.desk.settle(tracked.id, fence, end, RAN, tracked.known),
            lambda suspension: execution.finish(suspension, status),
            settles=True,
        )

    @precondition(lambda self: self.with_status("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def postpone(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(
            place,
            late,
            fault,
            lambda tracked, fence: self.desk.postpone(tracked.id, fence, "no such agent"),
            lambda suspension: execution.postpone(suspension, self.now),
        )

    @precondition(lambda self: self.with_status("resuming"))
    @rule(place=PLACES, late=LATE, waits=st.booleans(), fault=FAULT)
    def release(self, place: int, late: bool, waits: bool, fault: str | None) -> None:
        waits_for = ("refund",) if waits else ()

        def check(suspension: SuspensionModel) -> None:
            if suspension.journal:
                raise Refused("IllegalTransition")

        self.drive(
            place,
            late,
            fault,
            lambda tracked, fence: self.desk.release(tracked.id, fence, "stopping", waits_for),
            lambda suspension: execution.release(suspension, self.now, waits=waits),
            check,
        )

    @precondition(lambda self: self.with_status("failed"))
    @rule(place=PLACES, fault=FAULT)
    def revive(self, place: int, fault: str | None) -> None:
        tracked = self.pick(place, "failed")
        self.act(
            lambda: self.desk.revive(tracked.id, person("boss")),
            lambda: execution.revive(tracked.suspension, self.now),
            fault,
        )
        self.note_ready(tracked.id, tracked.suspension.run)

    @precondition(lambda self: any(item.doubt for tracked in self.tracked for item in tracked.suspension.items))
    @rule(place=PLACES, worker=st.sampled_from(WORKERS), fault=FAULT)
    def report(self, place: int, worker: str, fault: str | None) -> None:
        """Report a call's result from a worker that lost the run."""
        doubtful = [tracked for tracked in self.tracked if any(item.doubt for item in tracked.suspension.items)]
        tracked = doubtful[place % len(doubtful)]
        key = next(item.doubt[0] for item in tracked.suspension.items if item.doubt)
        latest = next(one for one in reversed(self.tracked) if one.suspension is tracked.suspension.run.suspensions[-1])
        self.act(
            lambda: self.desk.report(tracked.run_id, key, worker, RESULT),
            lambda: deciding.report(latest.suspension, key, worker, self.now),
            fault,
        )
        self.note_ready(latest.id, latest.suspension.run)
