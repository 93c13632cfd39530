"""Let time pass, and those who look at it do what it calls for, for real and in the model."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.proofs import models
from tests.proofs.draws import FAULT, PLACES
from tests.proofs.machines import Bench


class Clocks(Bench):
    """Time, and whoever looks at it."""

    @precondition(lambda self: self.held)
    @rule(step=st.sampled_from(["before", "at", "at", "after", "short"]))
    def pass_time(self, step: str) -> None:
        """Time passes to the next moment that counts, or until just before or after it."""
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

    @precondition(lambda self: self.standing("pending", "decided", "resuming"))
    @rule(place=PLACES, fault=FAULT)
    def look(self, place: int, fault: str | None) -> None:
        held = self.prefer(place, "pending", "decided", "resuming")
        self.act(lambda: self.desk.look(self.tenant, held.id), lambda: models.look(held.pause, self.now), fault)
        self.note_ready(held.id, held.pause.run)

    @precondition(lambda self: self.due)
    @rule()
    def beat(self) -> None:
        """The clock looks at all that is due."""
        for suspension_id in self.wait(self.agenda.due(self.tenant, self.now)):
            held = next(one for one in self.held if one.id == suspension_id)
            self.act(
                lambda held=held: self.desk.look(self.tenant, held.id),
                lambda held=held: models.look(held.pause, self.now),
            )
            self.note_ready(held.id, held.pause.run)
