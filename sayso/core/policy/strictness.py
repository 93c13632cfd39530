"""The strictest of several actions and terms."""

from collections.abc import Sequence
from typing import Any

from sayso.core.calendar import measure_ms
from sayso.core.policy.rules import Action
from sayso.core.records.judgements import Sample
from sayso.core.records.proofs import allows_all, rank_step_up
from sayso.core.records.terms import (
    DECIDING,
    TERMS,
    Fallback,
    FallbackAction,
    Quorum,
    RuleTerms,
    Stage,
    Terms,
    may_reach,
)

STRICTNESS = {Action.ALLOW: 0, Action.REQUEST_APPROVAL: 1, Action.REQUEST_USER_INPUT: 1, Action.DENY: 2}
"""Allow is the least strict action and deny the strictest."""

_FALLBACKS = tuple(map(FallbackAction, ("fail", "deny", "escalate", "value", "approve")))
"""The fallbacks, strictest first."""

_TIMES = ("timeout_s", "extend_by_s", "start_by_s")
_STATED = tuple(name for name, term in TERMS.items() if term.decides or term.restated)
_REQUIRED = (*(name for name in _STATED if TERMS[name].strictest is any), "confirm_by")


def strictest_terms(all_terms: Sequence[RuleTerms]) -> RuleTerms:
    """Return terms that satisfy every condition of each: the highest quorum, the fewest reviewers, the shortest times.

    If no set of reviewers can meet all conditions, the reviewers are those of the terms with the highest quorum, or
    where one of each of several must approve, these.
    """
    first = all_terms[0]
    if all(terms == first for terms in all_terms):
        return first
    if any(terms.stages for terms in all_terms):
        return _join_stages(all_terms)
    approve, deny = max(terms.quorum.approve for terms in all_terms), min(terms.quorum.deny for terms in all_terms)
    each_of = tuple(dict.fromkeys(name for terms in all_terms for name in terms.quorum.each_of))
    approve = max(approve, len(each_of))
    samples = [terms.sample for terms in all_terms if terms.sample is not None]
    before = max((sample.before or 0 for sample in samples), default=0) or None
    after = max((sample.after or 0 for sample in samples), default=0) or None
    sample = Sample(before=before, after=after) if samples else None
    reviewers = _choose_reviewers(all_terms, approve + (sample is not None and sample.before is not None), each_of)
    same_steps = all(terms.escalate == first.escalate for terms in all_terms)
    steps = first.escalate if same_steps and any(terms.reviewers == reviewers for terms in all_terms) else ()
    fallback = min((terms.fallback for terms in all_terms), key=lambda fallback: _FALLBACKS.index(fallback.action))
    update: dict[str, Any] = {
        name: term.strictest(getattr(terms, name) for terms in all_terms)
        for name, term in TERMS.items()
        if term.strictest is not None
    }
    update |= {
        "reviewers": reviewers,
        "quorum": Quorum(approve=approve, deny=deny, each_of=each_of),
        "escalate": steps,
        "fallback": Fallback() if fallback.action is FallbackAction.ESCALATE and not steps else fallback,
        "sample": sample,
    }
    stated = {name: [getattr(terms, name) for terms in all_terms if name in terms.model_fields_set] for name in _TIMES}
    update |= {name: min(values) for name, values in stated.items() if values}
    if counted := [terms for terms in all_terms if terms.timeout is not None]:
        shortest = min(counted, key=_measure_timeout_ms)
        update |= {"timeout": shortest.timeout, "working_hours": shortest.working_hours}
    last_s = update.get("timeout_s", first.timeout_s)
    reminders = {after_s for terms in all_terms for after_s in terms.remind_after_s if after_s < last_s}
    return first.model_copy(update={**update, "remind_after_s": tuple(sorted(reminders))})


def _join_stages(all_terms: Sequence[RuleTerms]) -> RuleTerms:
    """Return the strictest terms with the stages of all; the reviewers of terms without stages are one stage."""
    free: dict[str, object] = {"reviewers": (), "quorum": Quorum(), "stages": ()}
    joined = strictest_terms([terms.model_copy(update=free) for terms in all_terms])
    alone = (Stage(reviewers=terms.reviewers, quorum=terms.quorum) for terms in all_terms if _names_stage(terms))
    stages = tuple(dict.fromkeys((*(stage for terms in all_terms for stage in terms.stages), *alone)))
    approve = max((terms.quorum.approve for terms in all_terms if not terms.reviewers), default=1)
    return raise_quorum(joined.model_copy(update={"stages": stages, "reviewers": (), "quorum": Quorum()}), approve)


def _names_stage(terms: RuleTerms) -> bool:
    return bool(terms.reviewers) and terms.quorum.approve > 0


def guard_terms(terms: RuleTerms) -> RuleTerms:
    """Return the terms for a call asked about in doubt, without a fallback that would run it."""
    if terms.fallback.action in (FallbackAction.APPROVE, FallbackAction.VALUE):
        return terms.model_copy(update={"fallback": Fallback(), "unattended_approval": False})
    return terms


def is_stricter(terms: RuleTerms, frozen: Terms) -> bool:
    """Return whether `terms` require more of the reviewers than an item's resolved terms."""
    if terms.stages and terms.stages != frozen.stages:
        return True
    same = bool(terms.stages)  # the current stage says who decides
    known = {*terms.reviewers, *(name for step in terms.escalate for name in step.reviewers)}
    narrower = not same and bool(terms.reviewers) and not (frozen.reviewers and known.issuperset(frozen.reviewers))
    return (
        narrower
        or (not same and terms.quorum.approve > frozen.quorum.approve)
        or (not same and terms.quorum.deny < frozen.quorum.deny)
        or not {*terms.quorum.each_of} <= {*frozen.quorum.each_of}
        or rank_step_up(terms.step_up) > rank_step_up(frozen.step_up)
        or not allows_all(terms.outsiders, frozen.outsiders)
        or any(getattr(terms, name) and not getattr(frozen, name) for name in _REQUIRED)
    )


def state_terms(frozen: Terms) -> RuleTerms:
    """Return an item's terms as a rule would state them, without times."""
    kept = {name: getattr(frozen, name) for name in _STATED if name not in DECIDING} | frozen.state_deciders()
    return RuleTerms(**kept, unattended_approval=frozen.fallback.action is FallbackAction.APPROVE)


def _measure_timeout_ms(terms: RuleTerms) -> int:
    hours = terms.working_hours
    return measure_ms(terms.timeout, hours.working.hours) if terms.timeout is not None and hours is not None else 0


def _choose_reviewers(all_terms: Sequence[RuleTerms], quorum: int, each_of: tuple[str, ...]) -> tuple[str, ...]:
    named = [terms.reviewers for terms in all_terms if terms.reviewers]
    if not named:
        return ()

    def may_meet(names: tuple[str, ...]) -> bool:
        return may_reach(names, quorum) and {*each_of} <= {*names}

    common = tuple(name for name in named[0] if all(name in names for names in named))
    if common and may_meet(common):
        return common
    enough = [names for names in named if may_meet(names)]
    if each_of and not enough:
        everybody = tuple(dict.fromkeys(name for names in (each_of, *named) for name in names))
        return each_of if may_reach(each_of, quorum) else everybody
    return min(enough, key=len) if enough else max(all_terms, key=lambda terms: terms.quorum.approve).reviewers


def raise_quorum(terms: RuleTerms, approve: int) -> RuleTerms:
    """Return the terms with a quorum of at least so many approvals; with stages that of the last one."""
    deciding = terms.stages[-1] if terms.stages else terms
    quorum = deciding.quorum.model_copy(update={"approve": max(deciding.quorum.approve, approve)})
    if not terms.stages:
        return terms.model_copy(update={"quorum": quorum})
    return terms.model_copy(update={"stages": (*terms.stages[:-1], deciding.model_copy(update={"quorum": quorum}))})
