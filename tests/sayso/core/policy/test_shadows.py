"""Shadow rules: judged beside the live rules, and without any effect on them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sayso.core.policy.decisions import PolicyDecision, ShadowDecision, describe_judged
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.policy.rules import Action, Mode, PolicyRule
from sayso.core.records.tools import ToolCall, ToolDefinition
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems
from tests.sayso.rule_builders import UNSURE, event, policy, rule

TOOLS = ["refund", "Re-fund", "payout", "pay_*", "*"]
PARTS = [{}, UNSURE, {"when": "args.amount > 100 && args.none > 1"}, {"subagent_name": "helper"}]


def rule_of(at: int, action: str, priority: int, tool: str, parts: dict[str, Any], absolute: bool) -> PolicyRule:
    named = {} if tool == "*" else {"tool_name_pattern" if "*" in tool else "tool_name": tool}
    hard = {"absolute": absolute and action == "deny"}
    return rule(f"r{at}", action, priority=priority, **named, **parts, **hard)


RULES = st.lists(
    st.tuples(
        st.sampled_from(["allow", "deny", "request_approval"]),
        st.integers(1, 5),
        st.sampled_from(TOOLS),
        st.sampled_from(PARTS),
        st.booleans(),
    ),
    max_size=5,
).map(lambda found: [rule_of(at, *parts) for at, parts in enumerate(found)])
CALLS = st.builds(
    event,
    st.sampled_from(["refund", "re-fund", "payout", "pay_out", "mail"]),
    tool_args=st.sampled_from([{}, {"amount": 50}, {"amount": 500}, {"amount": "500"}, {"amount": float("nan")}]),
)


def without_shadow(decision: PolicyDecision) -> PolicyDecision:
    return decision.model_copy(update={"shadow": (), "rule_version": ""})


def shown(found: PolicyRule) -> PolicyRule:
    return found.model_copy(update={"mode": Mode.SHADOW})


@examples(max_examples=400, deadline=None)
@given(RULES, st.lists(st.booleans(), min_size=5, max_size=5), CALLS)
def test_shadow_rules_change_no_decision(rules: list[PolicyRule], hidden: list[bool], call: Any) -> None:
    beside = [shown(one) if hide else one for one, hide in zip(rules, hidden, strict=False)]
    live = [one for one, hide in zip(rules, hidden, strict=False) if not hide]
    decision = policy(*beside).judge(call)
    assert without_shadow(decision) == without_shadow(policy(*live).judge(call))
    assert {one.rule_id for one in decision.shadow} <= {one.rule_id for one in beside if one.mode is Mode.SHADOW}


@examples(max_examples=400, deadline=None)
@given(RULES.filter(bool), CALLS)
def test_shadow_decision_is_that_of_the_rule_made_live(rules: list[PolicyRule], call: Any) -> None:
    first, *live = rules
    found = policy(shown(first), *live).judge(call).shadow
    would = policy(first, *live).judge(call)
    decided = {one.rule_id: one.action for one in found if one.error is None}
    expected = {first.rule_id: would.action} if would.policy_id == first.rule_id and is_plain(call) else {}
    assert decided == expected


def is_plain(call: Any) -> bool:
    """Whether the call is JSON, which has no NaN."""
    amount = call.tool_args.get("amount")
    return not (isinstance(amount, float) and math.isnan(amount))


def test_shadow_rule_counts_only_where_it_would_decide() -> None:
    late = shown(rule("late", "request_approval", priority=1, tool_name="refund"))
    assert policy(late, rule("first", "allow", priority=9)).judge(event()).shadow == ()
    (found,) = policy(late, rule("other", tool_name="mail")).judge(event()).shadow
    assert found == ShadowDecision(rule_id="late", action=Action.REQUEST_APPROVAL)


def test_shadow_rule_that_fails_makes_nobody_asked() -> None:
    decision = policy(shown(rule("unsure", tool_name="refund", absolute=True, **UNSURE))).judge(event())
    assert (decision.action, decision.error, decision.in_doubt) == (Action.ALLOW, None, None)
    decision = policy(shown(rule("unsure", **UNSURE))).judge(event())
    assert (decision.action, decision.error) == (Action.ALLOW, None)
    assert decision.shadow[0].action is None
    assert "amount" in (decision.shadow[0].error or "")


def test_shadow_rule_is_recorded_beside_the_judgement() -> None:
    rules = policy(shown(rule("strict", tool_name="refund")), rule("all", "allow", priority=1))
    decision = rules.judge(event(at_ms=5))
    call = ToolCall(call_id="c", index=0, name="refund", args={})
    data = describe_judged(call, decision, ToolDefinition(name="refund")).data
    assert data["shadow"] == [{"rule_id": "strict", "action": "deny"}]
    assert data["matched_rules"] == ["all"]
    assert data["at_ms"] == 5
    assert "absolute" not in data


def test_shadow_rules_are_part_of_the_version() -> None:
    plain: list[Policy] = [policy(), policy(shown(rule("one"))), policy(rule("one"))]
    assert len({one.version for one in plain}) == 3


def test_shadow_rule_never_hides_a_live_one() -> None:
    found = find_findings(policy(shown(rule("all", "allow", priority=900)), rule("refunds")), Known())
    assert found == []


def test_rule_file_with_a_shadow_rule() -> None:
    rules = parse(f"{HEAD}  - {{id: strict, tool: payout, action: deny, mode: shadow}}\n")
    assert rules.live == ()
    assert rules.rules[0].mode is Mode.SHADOW


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ("mode: dark", "mode: must be 'live' or 'shadow', not 'dark'"),
        ("mode: shadow, subjects: [llm_call]", "a shadow rule is for tool calls"),
        ("mode: shadow, subjects: [any]", "a shadow rule is for tool calls"),
        ("mode: shadow, event: llm_before_execute", "a shadow rule is for tool calls"),
    ],
)
def test_rule_file_refuses_a_shadow_rule_for_model_calls(parts: str, problem: str) -> None:
    (found,) = read_problems(f"{HEAD}  - {{id: one, action: deny, {parts}}}\n")
    assert problem in found
