"""Absolute rules: denials that no priority, other rule, edit, approval or error lifts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sayso.core.policy.decisions import KEYWORD, put_question
from sayso.core.policy.external import judge_final
from sayso.core.policy.rules import Action
from sayso.core.records.tools import ToolDefinition
from sayso.errors import PolicyForbids
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems
from tests.sayso.rule_builders import UNSURE, event, policy, rule
from tests.sayso.samples import ask, pending

NEVER = rule("never", priority=-5, tool_name="refund", absolute=True)
LIMIT = rule("limit", tool_name="refund", absolute=True, **UNSURE)
ACTIONS = ["allow", "deny", "request_approval"]


@examples(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(-10, 1_000_000), st.sampled_from([{}, UNSURE])), max_size=6
    ),
    st.sampled_from([Action.ALLOW, Action.REQUEST_APPROVAL]),
    st.sampled_from([{}, {"amount": 5}, {"amount": 500}, {"amount": "500"}, {"amount": float("nan")}]),
    st.sampled_from(["refund", "Refund", "re-fund"]),
)
def test_absolute_rule_decides_whatever_stands_beside_it(
    others: list[Any], default: Action, args: dict[str, Any], tool: str
) -> None:
    beside = [rule(f"a{at}", action, priority=first, **parts) for at, (action, first, parts) in enumerate(others)]
    decision = policy(NEVER, *beside, default=default).judge(event(tool, **args))
    assert (decision.action, decision.absolute, decision.policy_id) == (Action.DENY, True, "never")


def test_absolute_rule_says_that_nobody_can_lift_it() -> None:
    assert policy(NEVER).judge(event()).reason == "Rule never says deny. Nobody can lift this."
    said = rule("never", absolute=True, reason="No refunds to agents.")
    assert policy(said).judge(event()).reason == "No refunds to agents. Nobody can lift this."


def test_absolute_rule_that_cannot_be_evaluated_denies() -> None:
    """A person who approved the call would lift the denial."""
    decision = policy(LIMIT, rule("small", "allow", priority=900)).judge(event(amount="500"))
    assert (decision.action, decision.absolute, decision.policy_id) == (Action.DENY, True, "limit")
    assert decision.reason == "Rule limit could not be evaluated, and nobody can lift it, so the call is denied."
    assert "limit" in (decision.error or "")
    assert policy(LIMIT).judge(event("other", amount="500")).action is Action.ALLOW


def test_absolute_rule_that_matches_precedes_one_in_doubt() -> None:
    decision = policy(LIMIT, rule("z", tool_name="refund", absolute=True)).judge(event())
    assert (decision.policy_id, decision.in_doubt, decision.absolute) == ("z", None, True)


def test_absolute_rule_leaves_other_calls_to_the_rest() -> None:
    rules = policy(LIMIT, rule("rest", "request_approval"))
    decision = rules.judge(event(amount=5))
    assert (decision.action, decision.absolute, decision.policy_id) == (Action.REQUEST_APPROVAL, False, "rest")


def test_absolute_denial_of_a_model_call() -> None:
    call = event(None, event_type="llm_before_execute")
    rules = policy(rule("models", absolute=True, subjects=["llm_call"], reason="Closed"))
    assert rules.judge(call).absolute
    assert rules.judge(event()).action is Action.ALLOW


def test_absolute_denial_is_no_question() -> None:
    asks = ToolDefinition(name="refund", parameters={KEYWORD: {"question": "text", "answer": "reply"}})
    decision = policy(NEVER).judge(event(text="May I?"))
    assert put_question(asks, {"text": "May I?"}, decision) == decision


@pytest.mark.parametrize("args", [{"order": "A", "amount": 500}, {"order": "A", "amount": "500"}])
def test_no_edit_lifts_an_absolute_rule(args: dict[str, Any]) -> None:
    record = pending(ask())
    with pytest.raises(PolicyForbids, match=r"[Nn]obody can lift"):
        judge_final(policy(LIMIT), record, record.items[0], args, None)


def test_rule_file_with_an_absolute_rule() -> None:
    (found,) = parse(f"{HEAD}  - {{id: never, tool: payout, action: deny, absolute: true}}\n").rules
    assert found.absolute


@pytest.mark.parametrize("action", ["allow", "request_approval", "defer"])
def test_only_a_denial_can_be_absolute(action: str) -> None:
    (found,) = read_problems(f"{HEAD}  - {{id: never, action: {action}, absolute: true}}\n")
    assert "never: absolute: only a rule with `action: deny` can be absolute" in found
