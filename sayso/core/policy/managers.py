"""Reviewers that rules name by a fact of the run: the manager of the person behind it."""

import re
from collections.abc import Iterable
from typing import TypeVar

from sayso.core.records.base import Immutable
from sayso.core.records.suspensions import Who
from sayso.core.records.terms import GROUP_PREFIX, Fallback, FallbackAction, RuleTerms, Stage
from sayso.errors import InvalidInput

Decision = TypeVar("Decision", bound=Immutable)

MANAGER_PREFIX = "manager_of:"
_FACT = re.compile(r"[${(\s]*(args|claimed|constants|context|lists|run|who)\s*[.\[]")
MANAGERS = {"manager_of:who.person": "person_manager", "manager_of:who.owner": "owner_manager"}
"""What a rule writes as a reviewer, and the field of `Who` with the person's name."""


def names_managers(terms: RuleTerms) -> bool:
    """Return whether the terms name a manager as a reviewer."""
    return any(name in MANAGERS for name in _list_named(terms))


def refuse_expressions(reviewers: Iterable[str]) -> None:
    """Raise `ValueError` for a reviewer who reads as a fact of the run: nobody has that name, so nobody could decide.

    An agent writes its arguments, so it could name its own reviewers.
    """
    reviewers = tuple(reviewers)
    if facts := sorted(name for name in reviewers if _FACT.match(name.removeprefix(GROUP_PREFIX))):
        raise ValueError(
            f"the reviewer {facts[0]!r} reads as a fact of the run, which names nobody; write the name of a person or "
            f"{GROUP_PREFIX}NAME, or {' or '.join(MANAGERS)}, and a rule for each value that needs other reviewers"
        )
    if unknown := sorted(name for name in reviewers if name.startswith(MANAGER_PREFIX) and name not in MANAGERS):
        raise ValueError(f"there is no reviewer {unknown[0]!r}; use {' or '.join(MANAGERS)}")


def check_managers(terms: RuleTerms, who: Who | None) -> bool:
    """Return true if every manager that the terms name is known; raises `InvalidInput` otherwise."""
    for name in _list_named(terms):
        if name in MANAGERS and _find_manager(name, who) is None:
            raise InvalidInput(f"the {name.removeprefix(MANAGER_PREFIX)} of this run has no known manager")
    return True


def resolve_managers(terms: RuleTerms, who: Who | None, otherwise: RuleTerms) -> RuleTerms:
    """Return the terms with the names of managers; without a known reviewer, with those of `otherwise`."""
    if not names_managers(terms):
        return terms
    reviewers = _resolve(terms.reviewers, who)
    if terms.reviewers and not reviewers:
        reviewers = _resolve(otherwise.reviewers, who)
    steps = [(step, _resolve(step.reviewers, who)) for step in terms.escalate]
    escalate = tuple(step.model_copy(update={"reviewers": names}) for step, names in steps if names)
    stuck = terms.fallback.action is FallbackAction.ESCALATE and not escalate
    quorum = terms.quorum.model_copy(update={"each_of": _resolve(terms.quorum.each_of, who)})
    stages = tuple(_resolve_stage(stage, who) for stage in terms.stages)
    update = {"reviewers": reviewers, "quorum": quorum, "escalate": escalate, "stages": stages}
    return terms.model_copy(update=update | ({"fallback": Fallback()} if stuck else {}))


def _resolve_stage(stage: Stage, who: Who | None) -> Stage:
    """Return the stage with the names of managers. One that names nobody else keeps a name that nobody has."""
    each_of = _resolve(stage.quorum.each_of, who)
    quorum = stage.quorum.model_copy(update={"each_of": each_of})
    return stage.model_copy(update={"reviewers": _resolve(stage.reviewers, who) or stage.reviewers, "quorum": quorum})


def settle_managers(decision: Decision, terms: RuleTerms, who: Who | None, otherwise: RuleTerms) -> Decision:
    """Return the decision with `terms`, its own, as `resolve_managers` does."""
    resolved = resolve_managers(terms, who, otherwise)
    return decision if resolved is terms else decision.model_copy(update={"terms": resolved})


def _list_named(terms: RuleTerms) -> list[str]:
    return [*terms.named]


def _resolve(reviewers: tuple[str, ...], who: Who | None) -> tuple[str, ...]:
    names = (_find_manager(name, who) if name in MANAGERS else name for name in reviewers)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _find_manager(reviewer: str, who: Who | None) -> str | None:
    """Return the manager; None for one who is the person behind the run."""
    name: str | None = getattr(who, MANAGERS[reviewer]) if who is not None else None
    return None if who is not None and name in (who.person, who.owner) else name
