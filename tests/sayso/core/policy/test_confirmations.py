"""Rules with `confirm_by` name the person for whom the agent acts, and deny where no token names them."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.rules import Action
from sayso.core.policy.strictness import is_stricter, state_terms, strictest_terms
from sayso.core.records.items import freeze_terms
from sayso.core.records.suspensions import Who
from sayso.core.records.terms import Quorum, RuleTerms
from tests.sayso.rule_builders import event, policy, rule

ALONE = {"confirm_by": "who.person"}


def judge(who: Who | None, action: str = "request_approval", **terms: Any) -> PolicyDecision:
    return policy(rule("a", action, terms=ALONE | terms)).judge(event(who=who))


def test_person_of_the_token_is_named() -> None:
    decision = judge(Who(person="Mara"))
    assert (decision.action, decision.terms.confirm_by) == (Action.REQUEST_APPROVAL, "mara")
    assert decision.terms.quorum.approve == 0
    assert judge(Who(person="mara"), reviewers=["dora"]).terms.quorum.approve == 1


@pytest.mark.parametrize("who", [None, Who(), Who(owner="tom"), Who(person="")])
def test_call_for_nobody_known_is_denied(who: Who | None) -> None:
    decision = judge(who)
    assert (decision.action, decision.terms.confirm_by) == (Action.DENY, None)
    assert "no signed token names them" in decision.reason


@pytest.mark.parametrize("action", ["allow", "deny"])
def test_what_rules_decide_alone_needs_no_confirmation(action: str) -> None:
    decision = judge(Who(person="mara"), action)
    assert (decision.action, decision.terms.confirm_by, decision.terms.quorum.approve) == (action, None, 1)


def test_call_that_cannot_be_evaluated_is_confirmed_too() -> None:
    asking = rule("a", "request_approval", terms=ALONE, condition={"when": "args.amount > 5"})
    unknown = policy(asking).judge(event(who=Who(person="mara"), args={"amount": "much"}))
    assert (unknown.in_doubt, unknown.terms.confirm_by) == (Action.REQUEST_APPROVAL, "mara")


@pytest.mark.parametrize(
    "fields",
    [
        {"terms": {"confirm_by": "who.owner"}},
        {"terms": {"confirm_by": "mara"}},
        {"terms": ALONE, "grants": {"longest": "1h"}},
        {"terms": ALONE, "mandates": {"longest": "1h"}},
    ],
)
def test_rule_that_could_ask_nobody_or_skip_them_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"write who\.person|would run unconfirmed"):
        rule("a", "request_approval", **fields)


def test_strictest_terms_keep_the_confirmation() -> None:
    confirmed = RuleTerms(confirm_by="mara")
    both = strictest_terms([RuleTerms(reviewers=("dora",)), confirmed])
    assert (both.confirm_by, both.quorum.approve) == ("mara", 1)
    frozen = freeze_terms(RuleTerms(), rule_id=None, rule_version="v", now_ms=0)
    assert is_stricter(confirmed, frozen)
    stated = freeze_terms(confirmed, rule_id=None, rule_version="v", now_ms=0)
    assert (state_terms(stated).confirm_by, state_terms(stated).quorum) == ("mara", Quorum(approve=0))
    assert not is_stricter(confirmed, stated)
