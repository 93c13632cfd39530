"""Steps of time: clock ticks, freezes and clock jumps, in the desk and in the model."""

from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sayso.core.records.freezes import Freeze
from tests.proofs.base_machine import BaseMachine
from tests.proofs.model import timing
from tests.proofs.model.freezes import SCOPES, FreezeModel
from tests.proofs.strategies import FAULT, PLACES

MAX_FREEZES = 3


class ClockSteps(BaseMachine):
    """The rules of time."""

    @precondition(lambda self: self.tracked)
    @rule(step=st.sampled_from(["before", "at", "at", "after", "short"]))
    def pass_time(self, step: str) -> None:
        """Pass time to the next relevant moment, or to just before or after it."""
        moments = [
            moment
            for tracked in self.tracked
            for moment in (
                tracked.suspension.due_at or 0,
                tracked.suspension.until,
                *(item.start_by for item in tracked.suspension.items),
                *(item.deadline for item in tracked.suspension.items),
            )
        ]
        moment = min((one for one in moments if one > self.now), default=self.now + 1000)
        moment += {"before": -1, "at": 0, "after": 1, "short": -(moment - self.now) // 2}[step]
        self.store.now_ms = max(self.now, moment)

    @precondition(lambda self: self.with_status("pending", "decided", "resuming"))
    @rule(place=PLACES, fault=FAULT)
    def tick(self, place: int, fault: str | None) -> None:
        tracked = self.pick(place, "pending", "decided", "resuming")
        self.act(lambda: self.desk.tick(tracked.id), lambda: timing.tick(tracked.suspension, self.now), fault)
        self.note_ready(tracked.id, tracked.suspension.run)

    @precondition(lambda self: self.due)
    @rule()
    def tick_all_due(self) -> None:
        """Tick every suspension that is due."""
        for suspension_id in self.wait(self.schedule.due(self.now)):
            tracked = next(one for one in self.tracked if one.id == suspension_id)
            self.act(partial(self.desk.tick, tracked.id), partial(timing.tick, tracked.suspension, self.now))
            self.note_ready(tracked.id, tracked.suspension.run)

    # Freezes

    @precondition(lambda self: self.tracked and len(self.freeze_models) < MAX_FREEZES)
    @rule(scope=st.sampled_from([None] * 6 + [*SCOPES]))
    def freeze(self, scope: str | None) -> None:
        """Freeze rarely: few other steps happen meanwhile."""
        if scope is None:
            return
        self.freezes.append(Freeze(id=f"frz_{len(self.freezes)}", scope=scope, by="root", at_ms=self.now))
        self.freeze_models.append(FreezeModel(scope, self.now))

    @precondition(lambda self: any(one.unfrozen_at is None for one in self.freeze_models))
    @rule(place=PLACES)
    def unfreeze(self, place: int) -> None:
        active = [at for at, one in enumerate(self.freeze_models) if one.unfrozen_at is None]
        at = active[place % len(active)]
        self.freeze_models[at].unfrozen_at = self.now
        self.freezes[at] = self.freezes[at].model_copy(update={"unfrozen_by": "root", "unfrozen_at_ms": self.now})

    @precondition(lambda self: any(one.unfrozen_at is not None for one in self.freeze_models))
    @rule(place=PLACES, which=PLACES, fault=FAULT)
    def wake(self, place: int, which: int, fault: str | None) -> None:
        """Wake the suspensions that an ended freeze held; the clock may restart meanwhile."""
        unfrozen = [at for at, one in enumerate(self.freeze_models) if one.unfrozen_at is not None]
        at, tracked = unfrozen[which % len(unfrozen)], self.pick(place, "pending", "decided")
        self.act(
            lambda: self.desk.wake(tracked.id, self.freezes[at]),
            lambda: timing.wake(tracked.suspension, self.freeze_models[at], self.now),
            fault,
        )
        self.note_ready(tracked.id, tracked.suspension.run)
