"""Follows AFK's events: policies and providers get no ids, so a call is identified by its position in the turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

JUDGING_CALL = "tool_before_execute"


@dataclass(frozen=True)
class Position:
    """The position of a call: run, step and index within its turn."""

    run_id: str
    step: int
    occurrence: int

    @property
    def label(self) -> str:
        """An id that is the same in every process."""
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
    """The current turn of each run, read from its events. The first run is the root of the others."""

    root: str | None = None
    thread_id: str | None = None
    _turns: dict[str, _Turn] = field(default_factory=dict)

    def follow(self, event: Any) -> None:
        self.root, self.thread_id = self.root or event.run_id, self.thread_id or event.thread_id
        turn = self._turns.setdefault(event.run_id, _Turn())
        if event.type == "tool_batch_started":
            names, ids = event.data.get("tool_names", ()), event.data.get("tool_call_ids", ())
            self._turns[event.run_id] = _Turn(event.step, names, ids)
        elif event.type == "policy_decision":
            turn.last = event.data.get("event_type", "")
            turn.judged += turn.last == JUDGING_CALL

    def forget(self, run_id: str) -> None:
        self._turns.pop(run_id, None)

    def find_next(self, run_id: str, step: int) -> Position | None:
        """Return the call being judged, or None if its turn has not been seen."""
        turn = self._turns.get(run_id, _Turn())
        return Position(run_id, step, turn.judged) if turn.step == step else None

    def find_judged(self, run_id: str, step: int) -> Position | None:
        """Return the call judged last, or None if something else was judged last."""
        turn = self._turns.get(run_id, _Turn())
        known = turn.step == step and turn.last == JUDGING_CALL and turn.judged > 0
        return Position(run_id, step, turn.judged - 1) if known else None

    def name_of(self, position: Position) -> str:
        names = self._turns.get(position.run_id, _Turn()).names
        return str(names[position.occurrence]) if position.occurrence < len(names) else ""

    def id_of(self, position: Position) -> str | None:
        ids = self._turns.get(position.run_id, _Turn()).ids
        return (ids[position.occurrence] or None) if position.occurrence < len(ids) else None
