"""Which addresses outside a rule may name, and what rules allow together."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.rules import PolicyRule
from sayso.core.policy.strictness import is_stricter, strictest_terms
from sayso.core.records.items import freeze_terms
from sayso.core.records.terms import RuleTerms

JANE = "jane@partner.example"


def rule(action: str = "request_approval", **terms: Any) -> PolicyRule:
    return PolicyRule.model_validate({"rule_id": "r", "action": action, "terms": {"outsiders": [JANE], **terms}})


def test_addresses_are_read_in_small_letters_and_once() -> None:
    stated = rule(outsiders=["Jane@Partner.example", JANE, "*@customer.example"])
    assert stated.terms.outsiders == (JANE, "*@customer.example")


@pytest.mark.parametrize(
    "address", ["", "jane", "*", "*@*", "*@localhost", "j*@a.example", "a@*.example", "a@b.example\n"]
)
def test_other_patterns_are_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="is no mail address"):
        rule(outsiders=[address])
    with pytest.raises(ValidationError, match="at most 20"):
        rule(outsiders=[f"a{number}@b.example" for number in range(21)])


@pytest.mark.parametrize(
    ("action", "terms", "problem"),
    [
        ("allow", {}, "only an approval can be asked of outsiders"),
        ("request_user_input", {}, "only an approval can be asked of outsiders"),
        ("request_approval", {"step_up": "code"}, "a mailed code proves less than step_up"),
        ("request_approval", {"match_number": True}, "a mailed code proves less than match_number"),
        ("request_approval", {"confirm_by": "who.person"}, "nobody needs to approve"),
    ],
)
def test_rule_where_outsiders_could_not_approve_is_refused(action: str, terms: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        rule(action, **terms)


def test_rules_together_allow_what_each_allows() -> None:
    wide, narrow = RuleTerms(outsiders=("*@partner.example", "a@b.example")), RuleTerms(outsiders=(JANE,))
    assert strictest_terms((wide, narrow)).outsiders == (JANE,)
    assert strictest_terms((wide, RuleTerms(timeout_s=9))).outsiders == ()


def test_rule_that_allows_fewer_is_stricter() -> None:
    def frozen(*addresses: str) -> Any:
        return freeze_terms(RuleTerms(outsiders=addresses), rule_id="r", rule_version="v", now_ms=0)

    assert is_stricter(RuleTerms(), frozen(JANE))
    assert not is_stricter(RuleTerms(outsiders=("*@partner.example",)), frozen(JANE))
    assert not is_stricter(RuleTerms(outsiders=(JANE,)), frozen())
