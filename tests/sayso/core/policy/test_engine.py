"""The policy: which rule decides."""

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import ASK_EVERYTHING, stricter
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action, PolicyRule, Subject
from sayso.core.records.terms import RuleTerms
from tests.sayso.rule_builders import UNSURE, event, policy, rule

MODEL_CALL = event(None, event_type="llm_before_execute", step=3, metadata={"model": "m-1", "provider": "models.test"})

# Order


def test_the_highest_priority_decides_whatever_the_order_of_the_file() -> None:
    low, high = rule("a", "allow", priority=1), rule("b", "deny", priority=2)
    for rules in ((low, high), (high, low)):
        decision = policy(*rules).judge(event())
        assert (decision.action, decision.policy_id, decision.matched_rules) == (Action.DENY, "b", ("b", "a"))


def test_rules_of_one_priority_are_tried_from_a_to_z() -> None:
    decision = policy(rule("b", "allow"), rule("a", "deny"), rule("c", "allow")).judge(event())
    assert (decision.policy_id, decision.matched_rules) == ("a", ("a", "b", "c"))


def test_the_default_decides_when_no_rule_matches() -> None:
    for default in (Action.ALLOW, Action.DENY, Action.REQUEST_APPROVAL):
        terms = RuleTerms(timeout_s=7)
        decision = policy(rule("a", tool_name="other"), default=default, terms=terms).judge(event())
        assert (decision.action, decision.policy_id, decision.matched_rules) == (default, None, ())
        assert decision.terms == terms
        assert decision.error is None


def test_judge_returns_the_fields_of_the_rule() -> None:
    asking = rule(
        "a",
        "request_user_input",
        reason="A code is needed",
        request_payload={"target_arg": "code", "prompt": "Code?"},
        terms={"timeout_s": 9},
    )
    rules = policy(asking)
    decision = rules.judge(event())
    assert decision.action is Action.REQUEST_USER_INPUT
    assert decision.reason == "A code is needed"
    assert decision.request_payload == asking.request_payload
    assert decision.terms == asking.terms
    assert decision.rule_version == rules.version


def test_without_rules_everything_is_asked() -> None:
    assert ASK_EVERYTHING.judge(event()).action is Action.REQUEST_APPROVAL


# Matching


@pytest.mark.parametrize(
    ("parts", "asked", "matches"),
    [
        ({"tool_name": "refund"}, event("refund"), True),
        ({"tool_name": "refund"}, event("Refund"), True),
        ({"tool_name": "refund"}, event("refund_all"), False),
        ({"tool_name": "refund"}, event(None), False),
        ({"tool_name_pattern": "refund_*"}, event("refund_all"), True),
        ({"tool_name_pattern": "refund_*"}, event("Refund_all"), True),
        ({"tool_name_pattern": "refund_?"}, event("refund_ab"), False),
        ({"tool_name_pattern": "*"}, event(None), False),
        ({"tool_name_pattern": "a.c"}, event("abc"), False),
        ({"agent": "sup*"}, event(), True),
        ({"agent": "sales"}, event(), False),
        ({"subagent_name": "wr*"}, event(subagent_name="writer"), True),
        ({"subagent_name": "*"}, event(subagent_name=""), False),
        ({"event_type": "tool_before_execute"}, event(), True),
        ({"event_type": "tool_before_execute"}, MODEL_CALL, False),
        ({"event_type": "llm_before_execute"}, MODEL_CALL, True),
        ({"event_type": "llm_before_execute"}, event(), False),
        ({"subjects": ["tool_call"]}, event(), True),
        ({"subjects": ["llm_call"]}, event(), False),
        ({"subjects": ["llm_call"]}, MODEL_CALL, True),
        ({"subjects": ["any"]}, MODEL_CALL, True),
        ({}, MODEL_CALL, False),
        ({"context_equals": {"env": "prod"}}, event(context={"env": "prod", "more": 1}), True),
        ({"context_equals": {"env": "prod"}}, event(context={"env": "test"}), False),
        ({"context_equals": {"env": "prod"}}, event(), False),
        ({"context_equals": {"on": True}}, event(context={"on": 1}), False),
        ({"context_equals": {"n": [1, {"a": None}]}}, event(context={"n": [1.0, {"a": None}]}), True),
        ({"context_has_keys": ["user"]}, event(context={"user": None}), True),
        ({"context_has_keys": ["user", "team"]}, event(context={"user": 1}), False),
        ({"claimed_equals": {"env": "prod"}}, event(claimed={"env": "prod"}), True),
        ({"claimed_equals": {"env": "prod"}}, event(context={"env": "prod"}), False),
        ({"context_equals": {"env": "prod"}}, event(claimed={"env": "prod"}), False),
        ({"context_has_keys": ["env"]}, event(claimed={"env": "prod"}), False),
        ({"claimed_has_keys": ["env"]}, event(claimed={"env": None}), True),
        ({"when": "claimed.env == 'prod'"}, event(claimed={"env": "prod"}, context={"env": "test"}), True),
        ({"when": "context.env == 'prod'"}, event(claimed={"env": "prod"}, context={"env": "test"}), False),
        ({"subjects": ["llm_call"], "metadata_equals": {"model": "m-1"}}, MODEL_CALL, True),
        ({"subjects": ["llm_call"], "metadata_equals": {"model": "m-2"}}, MODEL_CALL, False),
        ({"when": "args.amount > 100"}, event(amount=250), True),
        ({"when": "args.amount > 100"}, event(amount=50), False),
        ({"when": "context.env == 'prod' && step == 3"}, event(context={"env": "prod"}, step=3), True),
        ({"subjects": ["llm_call"], "when": "tool == '' && step == 3"}, MODEL_CALL, True),
        ({"tool_name": "refund", "when": "args.amount > 100"}, event("other"), False),
        ({"enabled": False}, event(), False),
        ({}, event(), True),
    ],
)
def test_a_rule_matches_when_all_its_parts_hold(parts: dict[str, Any], asked: PolicyEvent, matches: bool) -> None:
    decision = policy(rule("a", **parts)).judge(asked)
    assert (decision.action is Action.DENY, decision.error) == (matches, None)


def test_the_subject_of_an_event_is_what_its_type_says() -> None:
    assert event().subject is Subject.TOOL_CALL
    assert MODEL_CALL.subject is Subject.LLM_CALL
    with pytest.raises(ValidationError):
        event(event_type="weather_before_rain")


def test_subagent_rule_with_unknown_subagent_asks() -> None:
    """A call over the API may come from any sub-agent: a deny rule above an allow must not be skipped."""
    rules = policy(rule("a", subagent_name="writer", priority=300), rule("b", "allow"))
    decision = rules.judge(event(subagent_name=None))
    assert (decision.action, decision.policy_id) == (Action.REQUEST_APPROVAL, None)
    assert "rule a: it is unknown whether a sub-agent makes this call" in (decision.error or "")
    assert rules.judge(event(subagent_name="")).action is Action.ALLOW
    assert rules.judge(event(subagent_name="writer")).policy_id == "a"
    other = policy(rule("a", subagent_name="writer", agent="sales"), rule("b", "allow"))
    assert other.judge(event(subagent_name=None)).action is Action.ALLOW


@pytest.mark.parametrize("default", [Action.ALLOW, Action.DENY, Action.REQUEST_APPROVAL])
def test_model_call_without_rule_is_allowed(default: Action) -> None:
    rules = policy(rule("a"), rule("b", subjects=["tool_call"]), default=default)
    assert not rules.judges_models
    assert rules.judge(MODEL_CALL).action is Action.ALLOW


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"when": "context.budget > 3"}, "Key not found"),
        ({"metadata_equals": {"model": "m-1"}}, "the model of this model call is unknown"),
    ],
)
def test_model_call_in_doubt_is_denied(parts: dict[str, Any], words: str) -> None:
    rules = policy(rule("a", "allow", subjects=["llm_call"], **parts))
    decision = rules.judge(event(None, event_type="llm_before_execute"))
    assert decision.action is Action.DENY
    assert words in (decision.error or "")


# Properties


texts = st.text(st.sampled_from("aZ9 é😀\x00\ud800"), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
arguments = st.dictionaries(st.sampled_from(["amount", "country", "tags", "x"]), json_values, max_size=4)
CONDITIONS = (
    None,
    "args.amount > 100",
    "has(args.amount)",
    "args.country in ['CH', 'US']",
    "args.tags.exists(t, t == 'vip')",
    "args.x / args.amount > 1",
    "size(args) > 1",
    "step > 2",
)


@st.composite
def rule_sets(draw: st.DrawFn) -> list[PolicyRule]:
    ids = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6))
    return [
        rule(
            rule_id,
            draw(st.sampled_from(["allow", "deny", "request_approval"])),
            priority=draw(st.sampled_from([1, 100, 200])),
            tool_name_pattern=draw(st.sampled_from([None, "re*", "ship"])),
            when=draw(st.sampled_from(CONDITIONS)),
        )
        for rule_id in ids
    ]


@given(rules=rule_sets(), args=arguments, default=st.sampled_from([Action.ALLOW, Action.DENY]), data=st.data())
def test_the_order_of_the_rules_in_the_file_has_no_meaning(
    rules: list[PolicyRule], args: dict[str, Any], default: Action, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rules))
    one, other = policy(*rules, default=default), policy(*shuffled, default=default)
    assert one.version == other.version
    assert one.judge(event(tool_args=args)) == other.judge(event(tool_args=args))
    assert [r.rule_id for r in one.rules] == [r.rule_id for r in sorted(rules, key=lambda r: (-r.priority, r.rule_id))]


@given(rules=rule_sets(), args=arguments, priority=st.integers(0, 300), action=st.sampled_from(["allow", "deny"]))
def test_a_rule_that_does_not_match_changes_no_decision(
    rules: list[PolicyRule], args: dict[str, Any], priority: int, action: str
) -> None:
    stranger = rule("m", action, priority=priority, tool_name="something_else", **UNSURE)
    before = policy(*rules).judge(event(tool_args=args))
    after = policy(*rules, stranger).judge(event(tool_args=args))
    assert before.model_copy(update={"rule_version": ""}) == after.model_copy(update={"rule_version": ""})


@given(rules=rule_sets(), args=arguments, default=st.sampled_from([Action.ALLOW, Action.DENY]))
def test_judging_never_raises_and_only_a_sure_rule_or_default_allows(
    rules: list[PolicyRule], args: dict[str, Any], default: Action
) -> None:
    judged = policy(*rules, default=default)
    decision = judged.judge(event(tool_args=args))
    if decision.action is not Action.ALLOW:
        return
    allowing = next((r for r in judged.rules if r.rule_id == decision.policy_id), None)
    assert allowing is not None or default is Action.ALLOW
    before = judged.rules[: judged.rules.index(allowing)] if allowing else judged.rules
    assert not any(f"rule {r.rule_id}:" in (decision.error or "") for r in before)


# The policy itself


def test_two_rules_of_one_id_are_refused() -> None:
    with pytest.raises(ValidationError, match="rename the second a"):
        policy(rule("a"), rule("a", "allow"))


def test_default_request_user_input_is_invalid() -> None:
    with pytest.raises(ValidationError, match="cannot ask for a value"):
        policy(default=Action.REQUEST_USER_INPUT)


def test_the_version_changes_with_everything_that_can_change_a_decision() -> None:
    base = policy(rule("a"), rule("b", "allow"))
    others = [
        policy(rule("a")),
        policy(rule("a"), rule("b", "allow"), default=Action.DENY),
        policy(rule("a"), rule("b", "allow", priority=101)),
        policy(rule("a"), rule("b", "allow", enabled=False)),
        policy(rule("a"), rule("b", "allow", when="step > 1")),
        policy(rule("a", terms={"timeout_s": 1}), rule("b", "allow")),
        policy(rule("a"), rule("b", "allow"), terms=RuleTerms(timeout_s=1)),
    ]
    assert len({base.version, *(other.version for other in others)}) == 8
    assert policy(rule("b", "allow"), rule("a")).version == base.version
    assert len(base.version) == 16


def test_deny_is_stricter_than_asking_and_asking_than_allowing() -> None:
    def word(action: Action, reason: str = "") -> PolicyDecision:
        return PolicyDecision(action=action, reason=reason, rule_version="v")

    allow, deny = word(Action.ALLOW), word(Action.DENY)
    for asking in (word(Action.REQUEST_APPROVAL), word(Action.REQUEST_USER_INPUT)):
        assert stricter(allow, asking) is asking
        assert stricter(asking, allow) is asking
        assert stricter(asking, deny) is deny
        assert stricter(deny, asking) is deny
    first = word(Action.REQUEST_APPROVAL, "first")
    assert stricter(first, word(Action.REQUEST_USER_INPUT)) is first


def test_a_decision_survives_being_stored() -> None:
    decision = policy(rule("a", "request_user_input", request_payload={"target_arg": "code"})).judge(event())
    assert PolicyDecision.model_validate_json(decision.model_dump_json(), strict=True) == decision


def test_a_judgement_leaves_nothing_to_the_garbage_collector() -> None:
    """Collecting stops a busy service for tens of milliseconds."""
    rules = policy(rule("a", when="args.amount > 10.0"))
    rules.judge(event())
    gc.collect()
    rules.judge(event())
    assert gc.collect() == 0
