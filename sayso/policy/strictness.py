"""Compare actions and terms: which of several are the strictest, and whether a call is now judged under stricter ones.

The strictest of several terms hold every condition of each: the higher quorum, no self-approval, the fewest reviewers,
the shortest times. Plain functions on frozen terms.
"""

from collections.abc import Sequence
from typing import Any

from sayso.policy.rules import Action
from sayso.records.terms import Fallback, FallbackAction, Quorum, RuleTerms, Terms

STRICTNESS = {Action.ALLOW: 0, Action.REQUEST_APPROVAL: 1, Action.REQUEST_USER_INPUT: 1, Action.DENY: 2}
"""How strict each action is: deny, then asking, then allow."""

_FALLBACKS = (
    FallbackAction.FAIL,
    FallbackAction.DENY,
    FallbackAction.ESCALATE,
    FallbackAction.VALUE,
    FallbackAction.APPROVE,
)
"""Fallbacks, the strictest first."""

_TIMES = ("timeout_s", "extend_by_s", "start_by_s")


def strictest_terms(several: Sequence[RuleTerms]) -> RuleTerms:
    """Return terms that hold every condition of each of these; of one, that one.

    Where no set of reviewers can meet all conditions, the reviewers are those of the terms with the highest quorum.
    """
    first = several[0]
    if all(one == first for one in several):
        return first
    quorum = Quorum(approve=max(one.quorum.approve for one in several), deny=min(one.quorum.deny for one in several))
    reviewers = _choose_reviewers(several, quorum.approve)
    steps = next((one.escalate for one in several if one.reviewers == reviewers and _same_steps(several)), ())
    update: dict[str, Any] = {
        "reviewers": reviewers,
        "quorum": quorum,
        "no_self_approval": any(one.no_self_approval for one in several),
        "escalate": steps,
        "unattended_approval": all(one.unattended_approval for one in several),
        "fallback": _choose_fallback(several, bool(steps)),
        "channels": tuple(dict.fromkeys(name for one in several for name in one.channels)),
    }
    stated = {name: [getattr(one, name) for one in several if name in one.model_fields_set] for name in _TIMES}
    update |= {name: min(values) for name, values in stated.items() if values}
    last_s = update.get("timeout_s", first.timeout_s)
    reminders = {after_s for one in several for after_s in one.remind_after_s if after_s < last_s}
    return first.model_copy(update={**update, "remind_after_s": tuple(sorted(reminders))})


def guard_terms(terms: RuleTerms) -> RuleTerms:
    """Return the terms for a call asked in doubt: a fallback that would let it run belongs to a rule that was sure."""
    if terms.fallback.action in (FallbackAction.APPROVE, FallbackAction.VALUE):
        return terms.model_copy(update={"fallback": Fallback(), "unattended_approval": False})
    return terms


def is_stricter(terms: RuleTerms, frozen: Terms) -> bool:
    """Return whether `terms` ask more of reviewers than the frozen terms of an item do."""
    known = {*terms.reviewers, *(name for step in terms.escalate for name in step.reviewers)}
    narrower = bool(terms.reviewers) and not (frozen.reviewers and known.issuperset(frozen.reviewers))
    return (
        narrower
        or terms.quorum.approve > frozen.quorum.approve
        or terms.quorum.deny < frozen.quorum.deny
        or (terms.no_self_approval and not frozen.no_self_approval)
    )


def state_terms(frozen: Terms) -> RuleTerms:
    """Return the frozen terms of an item as a rule would state them, but for their moments."""
    return RuleTerms(
        reviewers=frozen.reviewers,
        quorum=frozen.quorum,
        no_self_approval=frozen.no_self_approval,
        escalate=frozen.escalate,
        unattended_approval=frozen.fallback.action is FallbackAction.APPROVE,
        fallback=frozen.fallback,
    )


def _choose_reviewers(several: Sequence[RuleTerms], quorum: int) -> tuple[str, ...]:
    """Return the fewest reviewers who can meet the quorum: those that all terms name, else the smallest set."""
    named = [one.reviewers for one in several if one.reviewers]
    if not named:
        return ()
    common = tuple(name for name in named[0] if all(name in names for names in named))
    if len(common) >= quorum:
        return common
    enough = [names for names in named if len(names) >= quorum]
    return min(enough, key=len) if enough else max(several, key=lambda one: one.quorum.approve).reviewers


def _choose_fallback(several: Sequence[RuleTerms], may_escalate: bool) -> Fallback:
    chosen = min((one.fallback for one in several), key=lambda one: _FALLBACKS.index(one.action))
    return Fallback() if chosen.action is FallbackAction.ESCALATE and not may_escalate else chosen


def _same_steps(several: Sequence[RuleTerms]) -> bool:
    return all(one.escalate == several[0].escalate for one in several)
