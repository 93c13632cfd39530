"""The guide's examples about where a call comes from do what it says."""

from typing import Any

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.records.suspensions import Who
from tests.pages import find_blocks, read_policies
from tests.sayso.core.policy.rule_files import parse
from tests.sayso.rule_builders import event

MARA = Who(person="mara", issuer="https://idp.example", person_manager="ines", owner="tom", groups=("sales",))


def find_example(rule_id: str) -> Policy:
    """Return the rules of the example that has this rule."""
    examples = find_blocks(read_policies(), "yaml")
    (found,) = (one for one in examples if f"id: {rule_id}\n" in one)
    policy: Policy = parse(found)
    return policy


@pytest.mark.parametrize(
    ("rule_id", "tool", "facts", "action"),
    [
        ("expenses", "give_discount", {"percent": 10, "who": MARA}, "allow"),
        ("expenses", "give_discount", {"percent": 11, "who": MARA}, "request_approval"),
        ("expenses", "give_discount", {"percent": 10, "claimed": {"groups": ["sales"]}}, "request_approval"),
    ],
)
def test_example_of_the_guide(rule_id: str, tool: str | None, facts: dict[str, Any], action: str) -> None:
    assert find_example(rule_id).judge(event(tool, **facts)).action == action


def test_expenses_go_to_the_manager() -> None:
    decision = find_example("expenses").judge(event("pay_expense", payee="mara", who=MARA))
    assert (decision.policy_id, decision.terms.reviewers) == ("expenses", ("ines",))
    other = find_example("expenses").judge(event("pay_expense", payee="ben", who=MARA))
    assert other.policy_id is None
