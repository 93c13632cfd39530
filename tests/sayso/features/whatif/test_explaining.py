"""Which rule decides a call, and why the others do not."""

from typing import Any

import pytest

from sayso.core.policy.decisions import KEYWORD
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action
from sayso.core.records.tools import ToolDefinition
from sayso.features.whatif.explaining import Match, Trial, explain, list_reads
from tests.sayso.rule_builders import event, policy, rule

LARGE = rule("large", "request_approval", priority=300, tool_name="refund", when="args.amount > 100")
REFUNDS = rule("refunds", "allow", priority=200, tool_name="refund")
REST = rule("rest", "deny")
RULES = policy(LARGE, REFUNDS, REST, default=Action.REQUEST_APPROVAL)


def trials_of(rules: Policy, call: PolicyEvent) -> dict[str, Trial]:
    return {one.rule.rule_id: one for one in explain(rules, call).trials}


def test_explain_names_the_deciding_rule_and_later_matches() -> None:
    found = explain(RULES, event(amount=250))
    assert found.decision == RULES.judge(event(amount=250))
    assert [(one.rule.rule_id, one.match) for one in found.trials] == [
        ("large", Match.DECIDES),
        ("refunds", Match.MATCHES),
        ("rest", Match.MATCHES),
    ]
    assert found.trials[0].saw == {"amount": 250}


@pytest.mark.parametrize(
    ("parts", "part", "saw"),
    [
        ({"tool_name": "payout"}, "tool", {"tool": "refund"}),
        ({"tool_name_pattern": "pay*"}, "tool", {"tool": "refund"}),
        ({"tool_names": ("payout", "pay*")}, "tool", {"tool": "refund"}),
        ({"agent": "billing"}, "agent", {"agent": "support"}),
        ({"subagent_name": "helper"}, "subagent", {"subagent": "writer"}),
        ({"context_equals": {"env": "test"}}, "context", {"env": "prod"}),
        ({"context_has_keys": ("ticket",)}, "context", {}),
        ({"claimed_equals": {"plan": "paid"}}, "claimed", {"plan": "free"}),
        ({"when": 'args.amount > 100 && agent == "x"'}, "when", {"amount": 7, "agent": "support"}),
        ({"subjects": ("llm_call",)}, "subjects", {}),
        ({"tool_name": "refund", "agent": "billing", "when": "args.amount > 1"}, "agent", {"agent": "support"}),
    ],
)
def test_explain_names_the_first_unmet_part(parts: dict[str, Any], part: str, saw: dict[str, Any]) -> None:
    call = event(amount=7, subagent_name="writer", context={"env": "prod"}, claimed={"plan": "free"})
    trial = trials_of(policy(rule("one", "deny", **parts)), call)["one"]
    assert (trial.match, trial.part, trial.saw) == (Match.DIFFERS, part, saw)


def test_explain_names_errors_and_disabled_rules() -> None:
    rules = policy(LARGE, rule("off", "deny", enabled=False), rule("other", "deny", subagent_name="helper"))
    found = trials_of(rules, event())
    assert found["large"].match is Match.UNKNOWN
    assert "amount" in found["large"].error
    assert found["off"].match is Match.DISABLED
    assert "sub-agent" in found["other"].error


def test_explain_survives_a_call_that_is_not_json() -> None:
    found = explain(RULES, event(amount=float("nan")))
    assert found.decision.action is Action.REQUEST_APPROVAL
    assert {one.match for one in found.trials} == {Match.UNKNOWN}
    assert all(one.error for one in found.trials)


def test_explain_asks_the_question_of_a_registered_tool() -> None:
    asks = ToolDefinition(name="ask_user", parameters={KEYWORD: {"question": "text", "answer": "reply"}})
    call = event("ask_user", text="Which one?")
    rules = policy(rule("all", "allow"))
    assert explain(rules, call).decision.action is Action.ALLOW
    assert explain(rules, call, asks).decision.action is Action.REQUEST_USER_INPUT


def test_list_reads_ignores_names_in_texts() -> None:
    when = 'args.note.contains("tool step") && step > 2 && context.env == "prod"'
    call = event(note="x", step=3, context={"env": "prod"})
    assert list_reads(when, call) == {"note": "x", "step": 3, "context": {"env": "prod"}}
