"""Rule checks warn of assessors that the desk does not have, and sentences name those of a rule."""

from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.sentences.rules import describe_rule
from tests.sayso.rule_builders import policy, rule


def test_missing_assessor_is_a_finding() -> None:
    rules = policy(rule("small", "allow", tool_name="refund", assess={"by": "fraud", "high": {}}))
    (found,) = find_findings(rules, Known(assessors=("other",)))
    assert found.startswith("rule small: takes every call for high, because SAYSO_ASSESSORS has no assessor fraud")
    assert find_findings(rules, Known(assessors=("fraud",))) == []
    assert find_findings(rules, Known()) == []


def test_rule_with_an_assessor_says_so() -> None:
    rules = policy(rule("small", "allow", tool_name="refund", assess={"by": "fraud", "high": {}}))
    assert describe_rule(rules.rules[0]).endswith("The assessor fraud may ask for more scrutiny.")
