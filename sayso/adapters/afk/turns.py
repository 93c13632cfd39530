"""Follow AFK's events to know which call it speaks of: neither its policies nor its provider are told.

AFK judges the calls of a turn one after the other and tells of each judgement, so a call is known by its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

JUDGING_CALL = "tool_before_execute"


@dataclass(frozen=True)
class Place:
    """One call: of which run, in which step, and the how manieth of its turn."""

    run_id: str
    step: int
    occurrence: int

    @property
    def label(self) -> str:
        """A name that is the same wherever the run goes on."""
        return f"{self.run_id}:{self.step}:{self.occurrence}"


@dataclass
class _Turn:
    step: int | None = None
    names: Sequence[Any] = ()
    ids: Sequence[Any] = ()
    judged: int = 0
    last: str = ""


@dataclass
class Turns:
    """Where each run has come to, by its own events; the first of them is the root of the others."""

    root: str | None = None
    thread_id: str | None = None
    _turns: dict[str, _Turn] = field(default_factory=dict)

    def follow(self, event: Any) -> None:
        """Take note of an event."""
        self.root, self.thread_id = self.root or event.run_id, self.thread_id or event.thread_id
        turn = self._turns.setdefault(event.run_id, _Turn())
        if event.type == "tool_batch_started":
            names, ids = event.data.get("tool_names", ()), event.data.get("tool_call_ids", ())
            self._turns[event.run_id] = _Turn(event.step, names, ids)
        elif event.type == "policy_decision":
            turn.last = event.data.get("event_type", "")
            turn.judged += turn.last == JUDGING_CALL

    def forget(self, run_id: str) -> None:
        """Leave a run alone that has ended."""
        self._turns.pop(run_id, None)

    def find_next(self, run_id: str, step: int) -> Place | None:
        """Return the call that is being judged; None where the run's events have not told of its turn."""
        turn = self._turns.get(run_id, _Turn())
        return Place(run_id, step, turn.judged) if turn.step == step else None

    def find_judged(self, run_id: str, step: int) -> Place | None:
        """Return the call that was judged last; None where it was no call that was judged."""
        turn = self._turns.get(run_id, _Turn())
        known = turn.step == step and turn.last == JUDGING_CALL and turn.judged > 0
        return Place(run_id, step, turn.judged - 1) if known else None

    def name_of(self, place: Place) -> str:
        """Return the tool that a call is of, or nothing."""
        names = self._turns.get(place.run_id, _Turn()).names
        return str(names[place.occurrence]) if place.occurrence < len(names) else ""

    def id_of(self, place: Place) -> str | None:
        """Return the model's own id of a call, where it gave one."""
        ids = self._turns.get(place.run_id, _Turn()).ids
        return (ids[place.occurrence] or None) if place.occurrence < len(ids) else None
