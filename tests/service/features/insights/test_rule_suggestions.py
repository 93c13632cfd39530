"""A rule is suggested only for what people nearly always approve as it was asked, and it loads."""

from pathlib import Path

import pytest

from sayso.core.policy.files.reading import load_rulebook
from service.features.insights.figures import suggest_rule


@pytest.mark.parametrize(
    ("tool", "as_requested", "decided"),
    [
        ("refund", 49, 49),
        ("refund", 98, 100),
        ("refund", 0, 0),
        ("re*", 100, 100),
        ('x"\n- id: evil', 100, 100),
        ("refund\u0430", 100, 100),
        ("", 100, 100),
        ("a" * 101, 100, 100),
    ],
)
def test_no_rule_without_enough_approvals_or_a_plain_name(tool: str, as_requested: int, decided: int) -> None:
    assert suggest_rule(tool, as_requested, decided) == ""


@pytest.mark.parametrize("tool", ["refund", "bank_account.transfer", "no", "true", "mcp-server.list"])
def test_suggested_rule_loads_and_allows_the_tool(tool: str, tmp_path: Path) -> None:
    lines = suggest_rule(tool, 99, 100).splitlines(keepends=True)
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\ndefault: request_approval\nrules:\n" + "".join(f"  {line}" for line in lines))
    (rule,) = load_rulebook(path).rules
    assert (rule.action, rule.condition.tools) == ("allow", (tool,))
