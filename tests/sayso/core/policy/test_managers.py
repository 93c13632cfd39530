"""Reviewers named by a fact of the run: the manager of the person behind it."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.policy.managers import resolve_managers
from sayso.core.policy.rules import Action
from sayso.core.records.suspensions import Who
from sayso.core.records.terms import EscalationStep, Fallback, FallbackAction, RuleTerms
from tests.sayso.rule_builders import event, policy, rule

OF_PERSON, OF_OWNER = "manager_of:who.person", "manager_of:who.owner"
MARA = Who(person="mara", person_manager="ines", owner="tom", owner_manager="uwe")


def judge(reviewers: list[str], who: Who | None, otherwise: tuple[str, ...] = ()) -> PolicyDecision:
    asking = rule("a", "request_approval", terms={"reviewers": reviewers})
    return policy(asking, terms=RuleTerms(reviewers=otherwise)).judge(event(who=who))


def test_manager_of_the_person_decides() -> None:
    decision = judge([OF_PERSON, "dora"], MARA)
    assert (decision.policy_id, decision.terms.reviewers, decision.error) == ("a", ("ines", "dora"), None)
    assert judge([OF_OWNER], MARA).terms.reviewers == ("uwe",)
    assert judge([OF_OWNER, OF_PERSON, "ines"], MARA).terms.reviewers == ("uwe", "ines")


@pytest.mark.parametrize(
    "who", [None, Who(), Who(person="mara"), Who(owner_manager="uwe", owner="tom"), Who(person="a", person_manager="a")]
)
def test_unknown_manager_is_asked_about_under_the_other_reviewers(who: Who | None) -> None:
    decision = judge([OF_PERSON, "dora"], who)
    assert (decision.action, decision.policy_id) == (Action.REQUEST_APPROVAL, None)
    assert decision.terms.reviewers == ("dora",)
    assert "the who.person of this run has no known manager" in str(decision.error)
    assert judge([OF_PERSON], who, ("lead",)).terms.reviewers == ("lead",)


def test_manager_is_never_the_owner_of_the_key() -> None:
    who = Who(person="mara", person_manager="tom", owner="tom")
    assert judge([OF_PERSON, "dora"], who).terms.reviewers == ("dora",)


def test_steps_of_an_escalation_may_name_managers() -> None:
    terms = RuleTerms(
        reviewers=("dora",),
        escalate=(EscalationStep(after_s=60, reviewers=(OF_PERSON,)),),
        fallback=Fallback(action=FallbackAction.ESCALATE),
    )
    resolved = resolve_managers(terms, MARA, RuleTerms())
    assert [step.reviewers for step in resolved.escalate] == [("ines",)]
    alone = resolve_managers(terms, None, RuleTerms())
    assert (alone.escalate, alone.fallback.action) == ((), FallbackAction.DENY)


def test_terms_without_managers_stay_as_they_are() -> None:
    terms = RuleTerms(reviewers=("dora",))
    assert resolve_managers(terms, MARA, RuleTerms()) is terms


@pytest.mark.parametrize("name", ["manager_of:mara", "manager_of:who.key", "manager_of:"])
def test_manager_of_an_unknown_fact_is_a_fault(name: str) -> None:
    with pytest.raises(ValidationError, match=r"use manager_of:who\.person or manager_of:who\.owner"):
        rule("a", "request_approval", terms={"reviewers": [name]})


@pytest.mark.parametrize(
    "name",
    ["args.owner", "group:args.x", "run.started_by", "${args.owner}", "who.owner", "claimed.boss", "context.boss"],
)
def test_reviewer_named_by_an_argument_is_a_fault(name: str) -> None:
    """An agent writes its arguments: it could name its own reviewers, and as a plain name nobody has it."""
    for terms in ({"reviewers": [name]}, {"reviewers": ["ada"], "escalate": [{"after_s": 60, "reviewers": [name]}]}):
        with pytest.raises(ValidationError, match=r"reads as a fact of the run, which names nobody; write the name of"):
            rule("a", "request_approval", terms=terms)


def test_findings_do_not_take_a_manager_for_a_missing_person() -> None:
    rules = policy(rule("a", "request_approval", terms={"reviewers": [OF_PERSON, "dora"], "quorum": {"approve": 2}}))
    known: dict[str, Any] = {"reviewers": {"dora": True}}
    assert find_findings(rules, Known(**known)) == []
