"""The guide's examples about where a call comes from do what it says."""

from typing import Any

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.records.suspensions import ModelUsage, Progress, Who
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


def spent(output_tokens: int) -> Progress:
    return Progress(usage=(ModelUsage(model="large-1", output_tokens=output_tokens),))


@pytest.mark.parametrize(
    ("rule_id", "tool", "facts", "action"),
    [
        ("tainted-by-the-web", "send_mail", {"progress": Progress(tools=("read_web",))}, "request_approval"),
        ("tainted-by-the-web", "send_mail", {"progress": Progress(tools=("fetch_page", "look"))}, "request_approval"),
        ("tainted-by-the-web", "send_mail", {"progress": Progress(tools=("look",))}, "allow"),
        ("tainted-by-the-web", "send_mail", {}, "request_approval"),
        ("tainted-by-the-web", "look", {}, "allow"),
        ("tainted-by-the-web", "pay", {"progress": Progress()}, "deny"),
        ("tainted-by-the-web", "pay", {"progress": Progress(tools=("check_recipient",))}, "allow"),
        ("expenses", "give_discount", {"percent": 10, "who": MARA}, "allow"),
        ("expenses", "give_discount", {"percent": 11, "who": MARA}, "request_approval"),
        ("expenses", "give_discount", {"percent": 10, "claimed": {"groups": ["sales"]}}, "request_approval"),
        ("five-dollars-a-run", None, {"event_type": "llm_before_execute", "progress": spent(500_000)}, "allow"),
        ("five-dollars-a-run", None, {"event_type": "llm_before_execute", "progress": spent(500_001)}, "deny"),
        ("five-dollars-a-run", None, {"event_type": "llm_before_execute"}, "deny"),
        ("five-dollars-a-run", "look", {"progress": spent(500_001)}, "request_approval"),
    ],
)
def test_example_of_the_guide(rule_id: str, tool: str | None, facts: dict[str, Any], action: str) -> None:
    assert find_example(rule_id).judge(event(tool, **facts)).action == action


def test_expenses_go_to_the_manager() -> None:
    decision = find_example("expenses").judge(event("pay_expense", payee="mara", who=MARA))
    assert (decision.policy_id, decision.terms.reviewers) == ("expenses", ("ines",))
    other = find_example("expenses").judge(event("pay_expense", payee="ben", who=MARA))
    assert other.policy_id is None
