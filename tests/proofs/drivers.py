"""Steps of workers, in any order, in the desk and in the model."""

from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sayso.records.items import ItemDraft
from sayso.records.suspensions import RunEnd, RunStatus
from sayso.transitions.execution import Fence
from service.store.suspensions.saving import Saved
from tests.proofs import leases, models
from tests.proofs.draws import (
    BATCHES,
    FAULT,
    LATE,
    LEASE_MS,
    PLACES,
    RAN,
    RESULT,
    STATE,
    WORKERS,
    Held,
    ask_of,
    doubts_of,
    intents_of,
    thing_of,
)
from tests.proofs.machines import Bench
from tests.proofs.models import Pause, Refused, Thing
from tests.sayso.samples import person


class Drivers(Bench):
    """The rules of workers, and of redriving."""

    @precondition(lambda self: self.ready)
    @rule(worker=st.sampled_from(WORKERS), fault=FAULT)
    def take(self, worker: str, fault: str | None) -> None:
        (taken,) = self.wait(self.schedule.take(1))
        assert taken.id == self.ready.pop(0)
        held = next(one for one in self.held if one.id == taken.id)
        self.lease_held(held, worker, fault)

    @precondition(lambda self: self.revocations("decided", "resuming"))
    @rule(place=PLACES, worker=st.sampled_from(WORKERS), fault=FAULT)
    def lease(self, place: int, worker: str, fault: str | None) -> None:
        self.lease_held(self.prefer(place, "decided"), worker, fault)

    def lease_held(self, held: Held, worker: str, fault: str | None) -> None:
        held.known = self.act(
            lambda: self.desk.lease(held.id, worker, LEASE_MS),
            lambda: leases.lease(held.pause, worker, LEASE_MS, self.now),
            fault,
        )

    def drive(
        self,
        place: int,
        late: bool,
        fault: str | None,
        call: Callable[[Held, Fence], Coroutine[Any, Any, Saved]],
        predict: Callable[[Pause], object],
        check: Callable[[Pause], object] = lambda _: None,
        *,
        settles: bool = False,
        starts: bool = False,
    ) -> tuple[Held, Saved | None]:
        """Take a step with the current lease of a run, or with an earlier one."""
        held = self.prefer(place, "resuming")
        fence = Fence(held.pause.holder or "w1", held.pause.attempt - late, LEASE_MS)

        def predict_fenced() -> None:
            if settles and (held.pause.status, held.pause.holder) == ("resumed", fence.holder):
                return  # it did so before, and was not told
            if starts and models.stands_still(held.pause):
                raise Refused("Frozen")
            leases.check_fence(held.pause, (fence.holder, fence.attempt))
            check(held.pause)
            leases.renew(held.pause, LEASE_MS, self.now)
            predict(held.pause)

        saved = self.act(lambda: call(held, fence), predict_fenced, fault)
        held.known = saved or held.known
        if held.pause is held.pause.run.pauses[-1]:
            self.note_ready(held.id, held.pause.run)
        return held, saved

    @precondition(lambda self: self.revocations("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def renew(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(place, late, fault, lambda held, fence: self.desk.renew(held.id, fence), lambda _: None)

    @precondition(lambda self: self.revocations("resuming"))
    @rule(place=PLACES, late=LATE, every=LATE, with_state=st.booleans(), fault=FAULT)
    def redeem(self, place: int, late: bool, every: bool, with_state: bool, fault: str | None) -> None:
        """Redeem the calls that may start, or all of them, as no real worker does."""

        def things(pause: Pause) -> list[Thing]:
            return [thing for thing in pause.things if every or thing.runs]

        def predict(pause: Pause) -> None:
            if with_state:
                pause.journal.clear()
            leases.redeem(pause, things(pause))

        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.redeem(
                held.id,
                fence,
                intents_of(held, things(held.pause), fence),
                (),
                STATE if with_state else None,
                known=held.known,
            ),
            predict,
            lambda pause: leases.check_permits(things(pause), self.now),
            starts=True,
        )

    @precondition(lambda self: any(held.pause.journal for held in self.revocations("resuming")))
    @rule(place=PLACES, late=LATE, ended=st.sets(st.sampled_from([0, 1, models.UNASKED]), min_size=1), fault=FAULT)
    def note_results(self, place: int, late: bool, ended: set[int], fault: str | None) -> None:
        """Save results of some calls, started or not."""

        def predict(pause: Pause) -> None:
            pause.noted |= ended & pause.journal

        results = dict.fromkeys(ended, RESULT)
        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.note_results(held.id, fence, results, held.known),
            predict,
        )

    @precondition(lambda self: self.revocations("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def checkpoint(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.checkpoint(held.id, fence, STATE, RAN, held.known),
            leases.checkpoint,
        )

    @precondition(lambda self: self.revocations("resuming"))
    @rule(place=PLACES, late=LATE, batch=BATCHES, fault=FAULT)
    def suspend_again(self, place: int, late: bool, batch: list[dict[str, Any]], fault: str | None) -> None:
        """Suspend the run again: about calls in doubt, or about a new batch."""
        asked: list[ItemDraft] = []

        async def call(held: Held, fence: Fence) -> Saved:
            asked[:] = doubts_of(held) or [ask_of(at, drawn) for at, drawn in enumerate(batch)]
            leased = (await self.store.read(held.id)).record
            assert leased is not None
            return await self.desk.suspend_again(leased, fence, tuple(asked), STATE, RAN, 1)

        def predict(pause: Pause) -> None:
            leases.finish(pause, None)
            models.start(pause.run, [thing_of(ask, self.now) for ask in asked], self.now)

        held, _ = self.drive(place, late, fault, call, predict)
        run = held.pause.run
        if held.pause.status == "resumed" and held.pause.end is None and run.pauses[-1] not in self.pauses:
            following = self.wait(self.store.read(held.id)).record
            assert following is not None
            self.hold(str(following.following_id), run.pauses[-1])
            self.note_ready(str(following.following_id), run)

    @precondition(lambda self: self.revocations("resuming"))
    @rule(place=PLACES, late=LATE, status=st.sampled_from(["completed", "degraded", "failed"]), fault=FAULT)
    def settle(self, place: int, late: bool, status: str, fault: str | None) -> None:
        end = RunEnd(status=RunStatus(status))
        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.settle(held.id, fence, end, RAN, held.known),
            lambda pause: leases.finish(pause, status),
            settles=True,
        )

    @precondition(lambda self: self.revocations("resuming"))
    @rule(place=PLACES, late=LATE, fault=FAULT)
    def postpone(self, place: int, late: bool, fault: str | None) -> None:
        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.postpone(held.id, fence, "no such agent"),
            lambda pause: leases.postpone(pause, self.now),
        )

    @precondition(lambda self: self.revocations("resuming"))
    @rule(place=PLACES, late=LATE, waits=st.booleans(), fault=FAULT)
    def release(self, place: int, late: bool, waits: bool, fault: str | None) -> None:
        waits_for = ("refund",) if waits else ()

        def check(pause: Pause) -> None:
            if pause.journal:
                raise Refused("IllegalTransition")

        self.drive(
            place,
            late,
            fault,
            lambda held, fence: self.desk.release(held.id, fence, "stopping", waits_for),
            lambda pause: leases.release(pause, self.now, waits=waits),
            check,
        )

    @precondition(lambda self: self.revocations("failed"))
    @rule(place=PLACES, fault=FAULT)
    def revive(self, place: int, fault: str | None) -> None:
        held = self.prefer(place, "failed")
        self.act(
            lambda: self.desk.revive(held.id, person("boss")),
            lambda: leases.revive(held.pause, self.now),
            fault,
        )
        self.note_ready(held.id, held.pause.run)

    @precondition(lambda self: any(thing.doubt for held in self.held for thing in held.pause.things))
    @rule(place=PLACES, worker=st.sampled_from(WORKERS), fault=FAULT)
    def report(self, place: int, worker: str, fault: str | None) -> None:
        """Report a call's result from a worker that lost the run."""
        doubted = [held for held in self.held if any(thing.doubt for thing in held.pause.things)]
        held = doubted[place % len(doubted)]
        key = next(thing.doubt[0] for thing in held.pause.things if thing.doubt)
        latest = next(one for one in reversed(self.held) if one.pause is held.pause.run.pauses[-1])
        self.act(
            lambda: self.desk.report(held.run_id, key, worker, RESULT),
            lambda: models.report(latest.pause, key, worker, self.now),
            fault,
        )
        self.note_ready(latest.id, latest.pause.run)
