"""Frozen models of what people can undo: a decision before it takes effect, and a call that ran."""

from typing import Protocol

from pydantic import Field, JsonValue

from sayso.core.canonical_json import JsonObject
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


UNDO_SUFFIX = ":undo"  # of the tool of an item that offers to undo a call; no tool of an agent can have such a name


class Reversal(Immutable):
    """The call that ran at once under a veto, which the item offers to undo; `by` wanted an undo that is in doubt."""

    run_id: str
    suspension_id: str
    tool: str
    call_id: str
    index: int
    at_ms: int
    by: Actor | None = Field(None, exclude_if=is_empty)


class _Asked(Protocol):
    """A stored item, or one from an API response."""

    @property
    def reverses(self) -> object | None: ...
    @property
    def doubt(self) -> object | None: ...


def is_offer(item: _Asked) -> bool:
    """Return whether an item offers to undo a call that ran; one that asks whether an undo ran does not."""
    return item.reverses is not None and item.doubt is None


class UndoneCall(Immutable):
    """The exact arguments of a call that ran, and its result as it was saved: what its undo gets."""

    arguments: JsonObject
    result: JsonValue = None
