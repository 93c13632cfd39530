"""Frozen model of a decision that its author can still undo, with all that happens once it takes effect."""

from pydantic import Field

from sayso.core.records.base import Immutable, is_empty
from sayso.core.records.decisions import Actor, Decision, DecisionAction
from sayso.core.records.permissions import Grant, Mandate


class UndoableDecision(Immutable):
    """A decision that decides its item at `until_ms`, unless its author takes it back before.

    `grant`, `mandate` and `suspended` are what else it then does: as in a `Change`.
    """

    decision: Decision
    until_ms: int
    grant: Grant | None = Field(None, exclude_if=is_empty)
    mandate: Mandate | None = Field(None, exclude_if=is_empty)
    suspended: tuple[Grant, ...] = Field((), exclude_if=is_empty)

    @property
    def id(self) -> str:
        return self.decision.id

    @property
    def action(self) -> DecisionAction:
        return self.decision.action

    @property
    def by(self) -> Actor:
        return self.decision.by
