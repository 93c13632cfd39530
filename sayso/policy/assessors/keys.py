"""Frozen models for the key `assess` of a rule, as a rules file states it."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, ValidationInfo

from sayso.records.base import Immutable
from sayso.records.memory.assessments import Level
from sayso.records.terms import RuleTerms, check_each_of, may_reach

AssessorName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,39}$")]


class Scrutiny(Immutable):
    """What a level adds to the terms of its rule: never fewer approvals, and only reviewers of the rule."""

    quorum: int | None = Field(default=None, ge=1, le=20)
    reviewers: tuple[str, ...] = ()
    match_number: bool = False
    reason: str | None = Field(default=None, min_length=1, max_length=500)

    def add_to(self, terms: RuleTerms) -> RuleTerms:
        """Return the terms with this scrutiny."""
        approve = max(terms.quorum.approve, self.quorum or 1)
        update: dict[str, Any] = {"quorum": terms.quorum.model_copy(update={"approve": approve})}
        update["reviewers"] = self.reviewers or terms.reviewers
        update["match_number"] = terms.match_number or self.match_number
        return terms.model_copy(update=update)


class Assess(Immutable):
    """The assessor of a rule, and what each level adds. A call without a usable answer counts as high."""

    by: AssessorName
    medium: Scrutiny | None = None
    high: Scrutiny

    def list_scrutiny(self, level: Level) -> Iterator[Scrutiny]:
        """Yield what a level adds; high also adds what medium does."""
        if level is not Level.LOW and self.medium is not None:
            yield self.medium
        if level is Level.HIGH:
            yield self.high


def check_assess(assess: Assess | None, info: ValidationInfo) -> Assess | None:
    """Refuse an assessor that could change nothing, and scrutiny that asks for less than the rule or for too many."""
    if assess is None:
        return None
    action, mode = info.data.get("action"), info.data.get("mode")
    if action == "deny":
        raise ValueError("a denied call needs no assessor; remove assess, or change the action")
    if mode == "shadow":
        raise ValueError("a shadow rule asks no assessor; remove assess, or `mode: shadow`")
    if info.data.get("subjects") or (info.data.get("condition") and info.data["condition"].event_type):
        raise ValueError("assessors see tool calls only; remove subjects and event")
    terms = info.data.get("terms")  # missing when invalid, which is reported itself
    if terms is not None:
        names = terms.reviewers
        for level, scrutiny in (("medium", assess.medium), ("high", assess.high)):
            if scrutiny is not None:
                _check_scrutiny(level, scrutiny, terms, names)
                names = scrutiny.reviewers or names
    return assess


def _check_scrutiny(level: str, scrutiny: Scrutiny, terms: RuleTerms, names: tuple[str, ...]) -> None:
    if scrutiny.quorum is not None and scrutiny.quorum < terms.quorum.approve:
        raise ValueError(
            f"the quorum of {level} is {scrutiny.quorum}, below the {terms.quorum.approve} of the rule; raise it"
        )
    if names and (others := [name for name in scrutiny.reviewers if name not in names]):
        raise ValueError(f"the rule's reviewers do not name {others[0]}; name some of {', '.join(names)} for {level}")
    check_each_of(terms.quorum, scrutiny.reviewers or names)
    people, added = scrutiny.reviewers or names, scrutiny.add_to(terms)
    sampled = terms.sample is not None and terms.sample.before is not None
    if people and not may_reach(people, max(added.quorum.approve + sampled, added.quorum.deny)):
        raise ValueError(f"the quorum of {level} exceeds its {len(people)} reviewers; add reviewers, or lower it")
