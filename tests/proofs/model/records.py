"""Mutable models of runs, suspensions and items."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.proofs.model.freezes import FreezeModel


class Refused(Exception):
    """The step fails with an error of this name."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class UndoableModel(NamedTuple):
    """A decision that takes effect at `until`."""

    by: str
    action: str
    args: str
    until: int


@dataclass(eq=False)
class ItemModel:
    """One item, with absolute times."""

    kind: str
    deadline: int
    created: int
    quorum: tuple[int, int]
    reviewers: tuple[str, ...]
    fallback: str
    start_by_ms: int
    remind: list[int]
    steps: list[tuple[int, tuple[str, ...]]]
    extend_until: int
    idempotent: bool
    doubt: tuple[str, str] | None = None
    decisions: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Action and arguments per reviewer."""

    undo_ms: int = 0
    undoable: UndoableModel | None = None
    taken: int = 0
    """How many decisions were taken out of it."""

    retracted: list[str] = field(default_factory=list)
    """Who took a decision back."""

    verdict: str | None = None
    by: str | None = None
    start_by: int = 0
    redeemed: bool = False
    reminded: int = 0
    escalated: int = 0
    generation: int = 0
    decided: int = 0
    held_to: int = 0
    frozen_ms: int = 0
    grace: int = 0
    seen: bool = False
    asked_again: bool = False
    """Whether it was asked again, so the same rule is satisfied."""

    @property
    def open(self) -> bool:
        return self.verdict is None

    @property
    def unseen(self) -> bool:
        """Whether its fallback would approve an item that no reviewer has seen."""
        timed = self.deadline > self.created + self.frozen_ms
        seen = self.seen or bool(self.decisions or self.retracted)
        return self.open and self.fallback == "approve" and timed and not seen

    @property
    def may_run(self) -> bool:
        return self.verdict in ("approved", "answered")

    def close(self, verdict: str, by: str, now: int) -> None:
        self.verdict, self.by, self.start_by, self.decided = verdict, by, now + self.start_by_ms, now
        self.undoable = None


@dataclass(eq=False)
class SuspensionModel:
    """One suspension of a run."""

    items: list[ItemModel]
    created: int
    run: "RunModel"
    status: str = "pending"
    due_at: int | None = None
    holder: str | None = None
    attempt: int = 0
    until: int = 0
    tries: int = 0
    redrives: int = 0
    resumed: bool = False
    journal: set[int] = field(default_factory=set)
    noted: set[int] = field(default_factory=set)
    waits: bool = False
    end: str | None = None

    @property
    def open(self) -> list[ItemModel]:
        return [item for item in self.items if item.open]


@dataclass(eq=False)
class RunModel:
    """The events of a run, and how often it was made ready."""

    owner: str
    events: list[str] = field(default_factory=list)
    suspensions: list[SuspensionModel] = field(default_factory=list)
    freezes: list[FreezeModel] = field(default_factory=list)
    ready: int = 0
    """How many times the last step made the run ready."""

    def record(self, *kinds: str) -> None:
        self.events += kinds
