"""What rules may say of approvals that need a passkey or a code."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.rules import PolicyRule
from sayso.core.policy.strictness import is_stricter, state_terms, strictest_terms
from sayso.core.records.items import freeze_terms
from sayso.core.records.terms import RuleTerms

SIGNED, CODED, PLAIN = RuleTerms(step_up="passkey"), RuleTerms(step_up="code"), RuleTerms()


def rule(**fields: Any) -> PolicyRule:
    return PolicyRule.model_validate({"rule_id": "r", "action": "request_approval", **fields})


def test_strictest_terms_keep_the_signature() -> None:
    for terms in ([PLAIN, CODED], [CODED, PLAIN]):
        assert strictest_terms(terms).step_up == "code"
    for terms in ([CODED, SIGNED], [SIGNED, CODED, PLAIN]):
        assert strictest_terms(terms).step_up == "passkey"
    assert strictest_terms([PLAIN, SIGNED]).step_up == "passkey"
    assert strictest_terms([PLAIN, PLAIN]).step_up is None


def test_terms_that_ask_for_a_signature_are_stricter() -> None:
    signed, coded, plain = (
        freeze_terms(terms, rule_id="r", rule_version="v", now_ms=0) for terms in (SIGNED, CODED, PLAIN)
    )
    assert is_stricter(CODED, plain)
    assert is_stricter(SIGNED, coded)
    assert not is_stricter(CODED, coded)
    assert not is_stricter(CODED, signed)
    assert state_terms(coded).step_up == "code"
    assert is_stricter(SIGNED, plain)
    assert not is_stricter(SIGNED, signed)
    assert not is_stricter(PLAIN, signed)
    assert state_terms(signed).step_up == "passkey"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"terms": {"step_up": "passkey"}, "grants": {"longest": "1h"}}, "nothing is granted"),
        ({"terms": {"step_up": "passkey", "confirm_by": "who.person"}}, "step_up secures approvals"),
        ({"terms": {"step_up": "code"}, "grants": {"longest": "1h"}}, "nothing is granted"),
        ({"terms": {"step_up": "code", "confirm_by": "who.person"}}, "step_up secures approvals"),
        ({"terms": {"step_up": "sms"}}, "passkey"),
        ({"terms": {"step_up": True}}, "passkey"),
    ],
)
def test_rule_that_cannot_be_kept_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        rule(**fields)


def test_plans_and_confirmed_calls_may_be_signed() -> None:
    assert rule(terms={"step_up": "passkey"}, mandates={"longest": "1h"}).terms.step_up == "passkey"
    assert rule(terms={"step_up": "passkey", "confirm_by": "who.person", "reviewers": ["anna"]}).terms.step_up
