"""Sentences about decisions, outcomes and states: who decided what, and what went wrong since."""

from typing import Protocol

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import (
    COVERED,
    ActorKind,
    Decision,
    DecisionAction,
    EarlierDenial,
    Verdict,
    VoidedDecision,
)
from sayso.core.records.items import Item
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.core.records.undoing import is_offer
from sayso.core.sentences.deadlines import Moment, Sentence, compose, describe_span
from sayso.core.text.language import _, mark, ngettext
from sayso.core.text.summaries import count_changes
from sayso.core.transitions.states import ItemState, find_item_state
from sayso.core.transitions.superseding import is_superseded

_DECISIONS: dict[str, str] = {
    DecisionAction.APPROVE: mark("%(who)s approved"),
    DecisionAction.DENY: mark("%(who)s denied"),
    DecisionAction.VALUE: mark("%(who)s gave a value"),
    DecisionAction.FAIL: mark("%(who)s failed"),
}

_LATE: dict[str, tuple[str, str]] = {
    Verdict.APPROVED: (
        mark("Approved by itself: nobody answered in time"),
        mark("Approved by itself at %(when)s: nobody answered in time"),
    ),
    Verdict.DENIED: (mark("Denied: nobody answered in time"), mark("Denied at %(when)s: nobody answered in time")),
    Verdict.ANSWERED: (
        mark("The fallback’s value was used: nobody answered in time"),
        mark("The fallback’s value was used at %(when)s: nobody answered in time"),
    ),
    Verdict.FAILED: (mark("Failed: nobody answered in time"), mark("Failed at %(when)s: nobody answered in time")),
}
"""What a deadline has decided, without and with its time."""

_OFFER_DECISIONS: dict[str, str] = {
    DecisionAction.APPROVE: mark("%(who)s chose to undo it"),
    DecisionAction.DENY: mark("%(who)s chose to keep it"),
}
_OFFER_VERDICTS: dict[str, str] = {
    Verdict.APPROVED: _OFFER_DECISIONS[DecisionAction.APPROVE],
    Verdict.DENIED: _OFFER_DECISIONS[DecisionAction.DENY],
}
_OFFER_LATE = (
    mark("Stays as it is: nobody undid it in time"),
    mark("Stays as it is from %(when)s on"),
)
"""The same of an offer to undo a call, which a worker undoes after the decision."""

_RETURNED = mark("%(who)s requested changes")

_MACHINES: dict[str, str] = {
    ActorKind.TIMEOUT: mark("the deadline"),
    ActorKind.POLICY: mark("the rules"),
    ActorKind.WORKER: mark("the worker that started it"),
}

_CHOICES = {
    "run_again": mark("%(who)s chose to run it again"),
    "skip": mark("%(who)s chose to skip it"),
    "fail": mark("%(who)s chose to fail the run"),
    "reported": mark("%(who)s reported the result late"),
}

_VERDICTS: dict[str, str] = {
    Verdict.APPROVED: mark("%(who)s approved this"),
    Verdict.DENIED: mark("%(who)s denied this"),
    Verdict.FAILED: mark("%(who)s failed this"),
}

_STATES: dict[str, str] = {
    ItemState.OPEN: mark("open"),
    ItemState.APPROVED: mark("approved"),
    ItemState.ANSWERED: mark("answered"),
    ItemState.DENIED: mark("denied"),
    ItemState.CANCELLED: mark("cancelled"),
    ItemState.NOT_RUN: mark("never ran"),
    ItemState.IN_DOUBT: mark("in doubt"),
    ItemState.FAILED: mark("failed"),
    RunStatus.RUNNING: mark("running"),
    RunStatus.SUSPENDED: mark("suspended"),
    RunStatus.COMPLETED: mark("completed"),
    RunStatus.DEGRADED: mark("ended early"),
    "call_failed": mark("call failed"),
}

_AFTERWARDS = {
    ItemState.CANCELLED: mark("The run was cancelled before this call ran"),
    ItemState.NOT_RUN: mark("This call never ran"),
    ItemState.IN_DOUBT: mark("This call may have run: no result was reported"),
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
    def changes(self) -> object | None: ...
    @property
    def by(self) -> _Actor: ...


class _Shown(Protocol):
    @property
    def values(self) -> int: ...
    @property
    def values_shown(self) -> int: ...
    @property
    def look_ms(self) -> int: ...


class _Tool(Protocol):
    @property
    def args(self) -> JsonObject: ...


class _Decided(Protocol):
    """A stored item, or one from an API response."""

    @property
    def tool(self) -> _Tool: ...
    @property
    def doubt(self) -> object | None: ...
    @property
    def reverses(self) -> object | None: ...
    @property
    def outcome(self) -> _Outcome | None: ...


def describe_state(state: str) -> str:
    """Return the label of the state of an item or a run."""
    return _(_STATES.get(state, state.replace("_", " ")))


def describe_actor(actor: _Actor) -> str:
    """Return the reviewer's name, or the part of Sayso that acted."""
    return _(_MACHINES[actor.kind]) if actor.kind in _MACHINES else actor.id


def describe_decision(item: Item, decision: Decision) -> str:
    """Return one reviewer's decision: `ben approved with 1 change`."""
    template = _DECISIONS[decision.action] if decision.changes is None else _RETURNED
    if is_offer(item):
        template = _OFFER_DECISIONS.get(decision.action, template)
    made = _(template) % {"who": describe_actor(decision.by)}
    if decision.args is not None:
        made = _("%(decision)s with %(changes)s", decision=made, changes=_count(item.tool.args, decision.args))
    if decision.proof is not None:
        made = _("%(decision)s, signed with passkey “%(name)s”", decision=made, name=decision.proof.name)
    elif decision.code_used:
        made = _("%(decision)s, with a code of their app", decision=made)
    if decision.invited is not None:
        inviter = decision.invited.by
        made = _("%(decision)s, invited by %(inviter)s and proven by a mailed code", decision=made, inviter=inviter)
    absent = decision.by.for_person
    made = _("%(decision)s for %(person)s", decision=made, person=absent) if absent else made
    return f"{made}{describe_maker(decision.by.counts_as)}"


def describe_maker(counts_as: str) -> str:
    """Return that a decision counts as another person's, who made or reset its credential; empty if it does not."""
    if not counts_as:
        return ""
    return _(", which counts as the decision of %(maker)s, who made or reset the credential", maker=counts_as)


def describe_voided(voided: VoidedDecision) -> str:
    """Return a decision that no longer counts, and why."""
    made = _(_DECISIONS[voided.action]) % {"who": describe_actor(voided.by)}
    if voided.retracted:
        return _("%(decision)s, and took it back", decision=made)
    if voided.outdated:
        return _("%(decision)s, which does not count: what the call would do has changed", decision=made)
    return _("%(decision)s, which does not count: %(who)s was deactivated", decision=made, who=voided.by.id)


def describe_shown(shown: _Shown | None) -> str:
    """Return what a reviewer's page had shown, and for how long: `7 of 7 values shown, 41 s`."""
    if shown is None:
        return _("what was shown was not measured")
    return ngettext(
        "%(seen)s of %(num)s value shown, %(span)s",
        "%(seen)s of %(num)s values shown, %(span)s",
        shown.values,
        seen=shown.values_shown,
        span=describe_span(shown.look_ms),
    )


def describe_earlier_denial(denial: EarlierDenial, run_id: str, thread_id: str | None) -> Sentence:
    """Return who denied the same call before, when, where and why."""
    template = _("%(who)s denied this call %(when)s, for the same agent")
    if denial.thread_id == thread_id and thread_id is not None:
        template = _("%(who)s denied this call %(when)s, in the same thread")
    if denial.run_id == run_id:
        template = _("%(who)s denied this call %(when)s, in the same run")
    return compose(template, who=denial.by, when=Moment(denial.at_ms))


def describe_revision(item: Item) -> Sentence:
    """Return who had requested the changes with which an item's call is made again, when, and how often that was."""
    outcome = item.outcome
    if outcome is None or outcome.changes is None:
        return ()
    changes = outcome.changes
    template = _("A new version: %(who)s requested changes %(when)s (%(round)s of %(rounds)s)")
    return compose(
        template, who=outcome.by.id, when=Moment(outcome.at_ms), round=str(changes.round), rounds=str(changes.rounds)
    )


def describe_near_denial(denial: EarlierDenial, run_id: str, thread_id: str | None) -> Sentence:
    """Return who denied a near call before, when and where."""
    template = _("%(who)s denied a similar call %(when)s, for the same agent")
    if denial.thread_id == thread_id and thread_id is not None:
        template = _("%(who)s denied a similar call %(when)s, in the same thread")
    if denial.run_id == run_id:
        template = _("%(who)s denied a similar call %(when)s, in the same run")
    return compose(template, who=denial.by, when=Moment(denial.at_ms))


def describe_outcome(item: _Decided) -> str:
    """Return the item's outcome and who decided it; empty while it is open."""
    outcome = item.outcome
    if outcome is None:
        return ""
    if outcome.by.kind == ActorKind.TIMEOUT and outcome.verdict in _LATE:
        return _(_find_late(item, outcome.verdict)[0])
    if outcome.by.id == COVERED.id and outcome.by.kind == COVERED.kind:
        return _("Closed: a decision on another item was enough")
    name = describe_actor(outcome.by)
    name = name[:1].upper() + name[1:] if outcome.by.kind in _MACHINES else name
    if outcome.verdict == Verdict.ANSWERED:
        choice = outcome.value.get("choice") if item.doubt is not None and isinstance(outcome.value, dict) else None
        return _(_CHOICES.get(str(choice), _DECISIONS[DecisionAction.VALUE])) % {"who": name}
    if outcome.verdict == Verdict.APPROVED and outcome.args is not None:
        changes = _count(item.tool.args, outcome.args)
        return _("%(who)s approved this with %(changes)s", who=name, changes=changes)
    ended = _VERDICTS.get(outcome.verdict, f"%(who)s {outcome.verdict} this")
    if is_offer(item):
        ended = _OFFER_VERDICTS.get(outcome.verdict, ended)
    return _(ended if outcome.changes is None else _RETURNED) % {"who": name}


def describe_outcome_when(item: Item) -> Sentence:
    """Return the item's outcome, with its time where the deadline decided; empty while it is open."""
    outcome = item.outcome
    if outcome is None:
        return ()
    if outcome.by.kind is ActorKind.TIMEOUT:
        return compose(_(_find_late(item, outcome.verdict)[1]), when=Moment(outcome.at_ms))
    return (describe_outcome(item),)


def _find_late(item: _Decided, verdict: str) -> tuple[str, str]:
    return _OFFER_LATE if is_offer(item) else _LATE[verdict]


def describe_undecided(record: SuspensionRecord, item: Item) -> str:
    """Return how an item ended that nobody decided; empty for any other."""
    state = find_item_state(record, item)
    if item.outcome is not None or state is ItemState.OPEN:
        return ""
    if is_superseded(record):
        return _("Withdrawn, because it was asked again")
    return _("Not decided; the run was %(state)s", state=describe_state(state))


def describe_failure(record: SuspensionRecord, item: Item, error: str) -> str:
    """Return what went wrong with the call after its approval, with its error; empty if nothing did."""
    state = find_item_state(record, item)
    if item.outcome is None or not item.outcome.may_run:
        return ""
    if is_superseded(record):
        return _("It was asked again before this call ran")
    if state is not ItemState.FAILED:
        return _(_AFTERWARDS[state]) if state in _AFTERWARDS else ""
    reason = " ".join((error or (record.end.error if record.end else "") or "").split())
    if not reason:
        return _("The call failed")
    return _("Failed: %(reason)s", reason=f"{reason[:_REASON_CHARS]}{'…' if len(reason) > _REASON_CHARS else ''}")


def _count(before: JsonObject, after: JsonObject) -> str:
    """Return the number of changes; at least one, for a masked value that changed looks the same."""
    return ngettext("%(num)s change", "%(num)s changes", max(1, count_changes(before, after)))
