"""Sentences about decisions, outcomes and states: who decided what, and what went wrong since."""

from typing import Protocol

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.records.decisions import COVERED, ActorKind, Decision, DecisionAction, Verdict
from sayso.records.items import Item
from sayso.records.suspensions import RunStatus, SuspensionRecord
from sayso.sentences.times import describe_span
from sayso.transitions.item_states import ItemState, find_item_state

LATE = "Nobody decided in time"

ACTIONS: dict[str, str] = {
    DecisionAction.APPROVE: "approved",
    DecisionAction.DENY: "denied",
    DecisionAction.VALUE: "gave a value for",
    DecisionAction.FAIL: "failed",
}

_BY_FALLBACK: dict[str, str] = {
    Verdict.APPROVED: "approved by the fallback",
    Verdict.DENIED: "denied by the fallback",
    Verdict.ANSWERED: "answered with the fallback’s value",
    Verdict.FAILED: "failed by the fallback",
}

_MACHINES: dict[str, str] = {
    ActorKind.TIMEOUT: "the deadline",
    ActorKind.POLICY: "the rules",
    ActorKind.WORKER: "the worker that started it",
}

_CHOICES = {
    "run_again": "chose to run it again",
    "skip": "chose to skip it",
    "fail": "chose to fail the run",
    "reported": "reported the result late",
}

_STATES: dict[str, str] = {RunStatus.DEGRADED: "ended early", ItemState.NOT_RUN: "never ran"}

_AFTERWARDS = {
    ItemState.CANCELLED: "The run was cancelled before this call ran",
    ItemState.NOT_RUN: "This call never ran",
    ItemState.IN_DOUBT: "This call may have run: no result was reported",
}

_REASON_CHARS = 160


class _Actor(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...


class _Outcome(Protocol):
    @property
    def verdict(self) -> str: ...
    @property
    def args(self) -> JsonObject | None: ...
    @property
    def value(self) -> JsonValue: ...
    @property
    def by(self) -> _Actor: ...


class _Shown(Protocol):
    @property
    def values(self) -> int: ...
    @property
    def values_shown(self) -> int: ...
    @property
    def look_ms(self) -> int: ...


class _Decided(Protocol):
    """A stored item, or one from an API response."""

    @property
    def doubt(self) -> object | None: ...
    @property
    def outcome(self) -> _Outcome | None: ...


def describe_state(state: str) -> str:
    """Return the label of the state of an item or a run."""
    return _STATES.get(state, state.replace("_", " "))


def describe_actor(actor: _Actor) -> str:
    """Return the reviewer's name, or the part of Sayso that acted."""
    return _MACHINES.get(actor.kind, actor.id)


def describe_decision(decision: Decision) -> str:
    """Return one reviewer's decision: `ben approved with edited arguments`."""
    action = ACTIONS[decision.action].removesuffix(" for")
    edited = " with edited arguments" if decision.args is not None else ""
    absent = f" for {decision.by.for_person}" if decision.by.for_person else ""
    return f"{describe_actor(decision.by)} {action}{edited}{absent}"


def describe_shown(shown: _Shown | None) -> str:
    """Return what a reviewer's page had shown, and for how long: `7 of 7 values shown, 41 s`."""
    if shown is None:
        return "what was shown was not measured"
    noun = "value" if shown.values == 1 else "values"
    return f"{shown.values_shown} of {shown.values} {noun} shown, {describe_span(shown.look_ms)}"


def describe_outcome(item: _Decided) -> str:
    """Return the item's outcome and who decided it; empty while it is open."""
    outcome = item.outcome
    if outcome is None:
        return ""
    if outcome.by.kind == ActorKind.TIMEOUT:
        return f"{LATE}: {describe_fallback_verdict(outcome.verdict)}"
    if outcome.by.id == COVERED.id and outcome.by.kind == COVERED.kind:
        return "Closed: a decision on another item was enough"
    name = describe_actor(outcome.by)
    name = name[:1].upper() + name[1:] if outcome.by.kind in _MACHINES else name
    if outcome.verdict == Verdict.ANSWERED:
        return f"{name} {_describe_choice(item, outcome)}"
    edited = " with edited arguments" if outcome.verdict == Verdict.APPROVED and outcome.args is not None else ""
    return f"{name} {outcome.verdict} this{edited}"


def describe_fallback_verdict(verdict: str) -> str:
    """Return the fallback's verdict: `denied by the fallback`."""
    return _BY_FALLBACK.get(verdict, "decided by the fallback")


def describe_failure(record: SuspensionRecord, item: Item, error: str) -> str:
    """Return what went wrong with the call after its approval, with its error; empty if nothing did."""
    state = find_item_state(record, item)
    if item.outcome is None or not item.outcome.may_run:
        return ""
    if state is not ItemState.FAILED:
        return _AFTERWARDS.get(state, "")
    reason = " ".join((error or (record.end.error if record.end else "") or "").split())
    if not reason:
        return "The call failed"
    return f"Failed: {reason[:_REASON_CHARS]}{'…' if len(reason) > _REASON_CHARS else ''}"


def _describe_choice(item: _Decided, outcome: _Outcome) -> str:
    choice = outcome.value.get("choice") if item.doubt is not None and isinstance(outcome.value, dict) else None
    return _CHOICES.get(str(choice), "gave a value")
