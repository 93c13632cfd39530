"""Say terms, answers and outcomes in plain words: the same ones wherever they appear."""

from collections import Counter
from collections.abc import Sequence

from sayso.canonical_json import canonical_json
from sayso.records.decisions import COVERED, Actor, ActorKind, Decision, Outcome, Verdict
from sayso.records.freezes import TIME, Freeze
from sayso.records.items import Answer, Item, ItemKind
from sayso.records.suspensions import RunStatus, SuspensionRecord
from sayso.records.terms import FallbackAction
from sayso.transitions.closing import args_of
from sayso.transitions.freezing import find_held, lost_ms
from sayso.transitions.item_states import ItemState, RunState, find_item_state
from sayso.transitions.sightings import needs_sight
from sayso.transitions.timing import time_given_ms
from service.web.content.summaries import write_leaf
from service.web.content.times import describe_span

VERDICTS = {
    Verdict.APPROVED: "approved",
    Verdict.DENIED: "denied",
    Verdict.ANSWERED: "answered",
    Verdict.FAILED: "failed",
}

RUN_STATUSES: dict[str, str] = {
    RunStatus.RUNNING: "running",
    RunStatus.SUSPENDED: "waiting",
    RunStatus.COMPLETED: "completed",
    RunStatus.DEGRADED: "ended early",
    RunStatus.FAILED: "failed",
    RunStatus.CANCELLED: "cancelled",
    RunState.CALL_FAILED: "over, but a call failed",
}

ITEM_STATES: dict[ItemState, str] = {one: one.value for one in ItemState} | {
    ItemState.NOT_RUN: "never ran",
    ItemState.IN_DOUBT: "may have run",
}

_BY_FALLBACK = {
    Verdict.APPROVED: "approved by its fallback",
    Verdict.DENIED: "denied by its fallback",
    Verdict.ANSWERED: "given the fallback’s value",
    Verdict.FAILED: "failed by its fallback",
}

_MACHINES = {
    ActorKind.TIMEOUT: "the deadline",
    ActorKind.POLICY: "the rules",
    ActorKind.WORKER: "the worker that had begun it",
}

_CHOICES = {
    "run_again": "chose to run it again",
    "skip": "chose to skip it",
    "fail": "chose to fail the run",
    "reported": "reported its result after all",
}

_WHY_CHARS = 160
_SINCE = {
    ItemState.CANCELLED: "The run was cancelled before this ran",
    ItemState.NOT_RUN: "This never ran",
    ItemState.IN_DOUBT: "This may have run: nobody said how it ended",
}

_AFTER_DENIAL = {
    "continue": "If denied, the agent is told why and goes on.",
    "degrade": "If denied, the rest is skipped and the run ends early.",
    "fail": "If denied, the run fails.",
}


def describe_fallback(record: SuspensionRecord, item: Item) -> str:
    """Say what happens when nobody answers in time, to go behind 'If nobody answers, …'."""
    fallback, steps = item.terms.fallback, item.terms.escalate[item.escalated :]
    if fallback.action is FallbackAction.APPROVE:
        unseen = needs_sight(record, item)
        return "it is approved only if somebody who may decide it has seen it" if unseen else "it is approved as it is"
    if fallback.action is FallbackAction.VALUE:
        return f"the value “{write_leaf(fallback.value)}” is used"
    if fallback.action is FallbackAction.FAIL:
        return "the whole run fails"
    if fallback.action is FallbackAction.ESCALATE and steps:
        span = describe_span(time_given_ms(record, item))
        return f"{join_words(steps[0].reviewers)} can decide too, for another {span}"
    return "it is denied"


def describe_denial(record: SuspensionRecord) -> str:
    """Say what a denial does to the run."""
    return _AFTER_DENIAL[record.on_deny]


def describe_reviewers(record: SuspensionRecord, item: Item) -> str:
    """Say who may decide an item."""
    people = join_words(item.terms.reviewers, "or") if item.terms.reviewers else "Any reviewer"
    return f"{people}, except {record.run.owner}, who asked" if item.terms.no_self_approval else people


def describe_quorum(item: Item) -> str:
    """Say how many have to agree and how many do; nothing where one is enough.

    Approvals count together only for the same arguments, so of different ones the most that agree are told.
    """
    quorum = item.terms.quorum
    if quorum.approve == 1 and quorum.deny == 1:
        return ""
    approvals = _count_approvals(item)
    denials = len(item.decisions) - approvals.total()
    same = " of the same arguments" if len(approvals) > 1 else ""
    most = max(approvals.values(), default=0)
    return f"{most} of {quorum.approve} approvals{same}, {denials} of {quorum.deny} denials"


def describe_hold(record: SuspensionRecord, item: Item, freezes: Sequence[Freeze], now_ms: int) -> str:
    """Say that an item's time stands still and how much of it is left then; nothing while it passes."""
    if item.item_id not in find_held(record, freezes):
        return ""
    if any(one.scope == TIME and one.in_force for one in freezes):  # how much is left is just what is in doubt
        return "on hold"
    left_ms = item.terms.deadline_at_ms + lost_ms(record, item, freezes, now_ms) - now_ms
    return f"{describe_span(left_ms)} left, on hold" if left_ms > 0 else ""


def describe_deadlock(record: SuspensionRecord, item: Item) -> str:
    """Say that the words given can no longer come to a decision, and what the deadline brings; else nothing."""
    terms = item.terms
    if not item.open or not terms.reviewers:
        return ""
    said = {one.by.id for one in item.decisions} | ({record.run.owner} if terms.no_self_approval else set())
    left = len({*terms.reviewers, *(name for step in terms.escalate for name in step.reviewers)} - said)
    approvals = _count_approvals(item)
    denials = len(item.decisions) - approvals.total()
    if max(approvals.values(), default=0) + left >= terms.quorum.approve or denials + left >= terms.quorum.deny:
        return ""
    return f"Too few people are left to agree on anything. At the deadline {describe_fallback(record, item)}."


def _count_approvals(item: Item) -> Counter[bytes]:
    return Counter(canonical_json(args_of(item, one)) for one in item.decisions if one.action != "deny")


def describe_actor(actor: Actor) -> str:
    """Name who acted."""
    return _MACHINES.get(actor.kind, actor.id)


def describe_outcome(item: Item) -> str:
    """Say how an item ended and through whom; nothing while it is open."""
    outcome = item.outcome
    if outcome is None:
        return ""
    if outcome.by.kind is ActorKind.TIMEOUT:
        return f"Nobody answered in time: {_BY_FALLBACK[outcome.verdict]}"
    if outcome.by == COVERED:
        return "Closed, for another answer was enough"
    who = describe_actor(outcome.by)
    who = who[:1].upper() + who[1:] if outcome.by.kind in _MACHINES else who
    if outcome.verdict is Verdict.ANSWERED:
        return f"{who} {_describe_choice(item, outcome)}"
    edited = " with other arguments" if outcome.verdict is Verdict.APPROVED and outcome.args is not None else ""
    return f"{who} {VERDICTS[outcome.verdict]} this{edited}"


def describe_failure(record: SuspensionRecord, item: Item, error: str) -> str:
    """Say what went wrong since an item was decided, with the call's own error; nothing where nothing did."""
    state = find_item_state(record, item)
    if item.outcome is None or not item.outcome.may_run:
        return ""
    if state is ItemState.FAILED:
        why = " ".join((error or (record.end.error if record.end else "") or "").split())
        return f"Failed: {why[:_WHY_CHARS]}{'…' if len(why) > _WHY_CHARS else ''}" if why else "Its call failed"
    return _SINCE.get(state, "")


def _describe_choice(item: Item, outcome: Outcome) -> str:
    """A value as a deed; of a call in doubt its choice says what becomes of it."""
    choice = outcome.value.get("choice") if item.doubt is not None and isinstance(outcome.value, dict) else None
    return _CHOICES.get(str(choice), "gave a value")


def describe_word(decision: Decision) -> str:
    """Say what one reviewer said."""
    words = {"approve": "approved", "deny": "denied", "value": "gave a value", "fail": "failed it"}
    edited = " with other arguments" if decision.args is not None else ""
    return f"{describe_actor(decision.by)} {words[decision.action]}{edited}"


def find_hindrance(record: SuspensionRecord, item: Item, name: str) -> str | None:
    """Say why this person cannot decide an open item, or None where they can; the desk has the last word."""
    if item.terms.no_self_approval and name == record.run.owner:
        return "You asked for this call, so somebody else has to decide it."
    if item.terms.reviewers and name not in item.terms.reviewers:
        return f"This is for {join_words(item.terms.reviewers, 'or')} to decide."
    if any(one.by.id == name for one in item.decisions):
        return f"You have given your word. {describe_deadlock(record, item) or 'It now takes the others.'}"
    return None


def name_question(item: Item) -> str:
    """Name what is asked for."""
    if item.doubt is not None:
        return "may already have run"
    if item.kind is ItemKind.INPUT or Answer.APPROVE not in item.allowed:
        return "needs a value"
    return "needs approval"


def describe_resemblance(item: Item) -> str:
    """Say which names in the rules the tool's name looks like; nothing where it looks like none."""
    if not item.resembles:
        return ""
    return f"This name only looks like {join_words(item.resembles)} in the rules. Those rules have judged it too."


def join_words(words: tuple[str, ...] | list[str], last: str = "and") -> str:
    """Join words as a sentence does: `anna, ben and carla`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
