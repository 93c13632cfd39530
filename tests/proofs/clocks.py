"""Steps of time: clock ticks, freezes and clock jumps, in the desk and in the model."""

from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sayso.records.freezes import Freeze
from tests.proofs import models
from tests.proofs.draws import FAULT, PLACES
from tests.proofs.machines import Bench
from tests.proofs.spans import SCOPES, Span

MOST_FREEZES = 3


class Clocks(Bench):
    """The rules of time."""

    @precondition(lambda self: self.held)
    @rule(step=st.sampled_from(["before", "at", "at", "after", "short"]))
    def pass_time(self, step: str) -> None:
        """Pass time to the next relevant moment, or to just before or after it."""
        moments = [
            moment
            for held in self.held
            for moment in (
                held.pause.look or 0,
                held.pause.until,
                *(thing.start_by for thing in held.pause.things),
                *(thing.deadline for thing in held.pause.things),
            )
        ]
        moment = min((one for one in moments if one > self.now), default=self.now + 1000)
        moment += {"before": -1, "at": 0, "after": 1, "short": -(moment - self.now) // 2}[step]
        self.store.now_ms = max(self.now, moment)

    @precondition(lambda self: self.revocations("pending", "decided", "resuming"))
    @rule(place=PLACES, fault=FAULT)
    def look(self, place: int, fault: str | None) -> None:
        held = self.prefer(place, "pending", "decided", "resuming")
        self.act(lambda: self.desk.tick(held.id), lambda: models.look(held.pause, self.now), fault)
        self.note_ready(held.id, held.pause.run)

    @precondition(lambda self: self.due)
    @rule()
    def beat(self) -> None:
        """Tick every suspension that is due."""
        for suspension_id in self.wait(self.schedule.due(self.now)):
            held = next(one for one in self.held if one.id == suspension_id)
            self.act(partial(self.desk.tick, held.id), partial(models.look, held.pause, self.now))
            self.note_ready(held.id, held.pause.run)

    # What is frozen

    @precondition(lambda self: self.held and len(self.frozen) < MOST_FREEZES)
    @rule(scope=st.sampled_from([None] * 6 + [*SCOPES]))
    def freeze(self, scope: str | None) -> None:
        """Freeze rarely: few other steps happen meanwhile."""
        if scope is None:
            return
        self.freezes.append(Freeze(id=f"frz_{len(self.freezes)}", scope=scope, by="root", at_ms=self.now))
        self.frozen.append(Span(scope, self.now))

    @precondition(lambda self: any(one.unfrozen is None for one in self.frozen))
    @rule(place=PLACES)
    def unfreeze(self, place: int) -> None:
        revocations = [at for at, one in enumerate(self.frozen) if one.unfrozen is None]
        at = revocations[place % len(revocations)]
        self.frozen[at].unfrozen = self.now
        self.freezes[at] = self.freezes[at].model_copy(update={"unfrozen_by": "root", "unfrozen_at_ms": self.now})

    @precondition(lambda self: any(one.unfrozen is not None for one in self.frozen))
    @rule(place=PLACES, which=PLACES, fault=FAULT)
    def wake(self, place: int, which: int, fault: str | None) -> None:
        """Wake the suspensions that an ended freeze held; the clock may restart meanwhile."""
        unfrozen = [at for at, one in enumerate(self.frozen) if one.unfrozen is not None]
        at, held = unfrozen[which % len(unfrozen)], self.prefer(place, "pending", "decided")
        self.act(
            lambda: self.desk.wake(held.id, self.freezes[at]),
            lambda: models.wake(held.pause, self.frozen[at], self.now),
            fault,
        )
        self.note_ready(held.id, held.pause.run)
