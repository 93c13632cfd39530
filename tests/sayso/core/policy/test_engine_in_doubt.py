"""Calls that cannot be evaluated: a reviewer is always asked."""

from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sayso.core.canonical_json import MAX_DIGITS
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action, PolicyRule, RequestPayload, RuleCondition
from sayso.core.records.terms import Fallback, FallbackAction, Quorum, RuleTerms
from tests.sayso.rule_builders import UNSURE, event, policy, rule

Model = TypeVar("Model", bound=BaseModel)


def broken(model: type[Model], **fields: Any) -> Model:
    """Return a model that was never validated."""
    return model.model_construct(**fields)


def test_failing_rule_before_an_allowing_rule_asks() -> None:
    decision = policy(rule("unsure", "deny", priority=200, **UNSURE), rule("open", "allow")).judge(event())
    assert decision.action is Action.REQUEST_APPROVAL
    assert decision.reason == "Rule unsure could not be evaluated, so a reviewer decides."
    assert decision.error is not None
    assert "rule unsure: Key not found in map" in decision.error
    assert (decision.policy_id, decision.matched_rules) == (None, ("open",))


def test_failing_rule_before_an_allowing_default_asks() -> None:
    assert policy(rule("unsure", "allow", **UNSURE)).judge(event()).action is Action.REQUEST_APPROVAL


def test_failing_rule_before_a_denial_asks() -> None:
    decision = policy(rule("unsure", "allow", priority=200, **UNSURE), rule("closed", "deny")).judge(event())
    assert decision.action is Action.REQUEST_APPROVAL


@pytest.mark.parametrize("action", ["deny", "allow", "request_approval"])
def test_failing_rule_after_the_deciding_one_is_recorded(action: str) -> None:
    first, after = rule("first", action, priority=200), rule("unsure", "deny", **UNSURE)
    decision = policy(first, after).judge(event())
    assert (decision.action, decision.policy_id) == (Action(action), "first")
    assert decision.error is not None
    assert "unsure" in decision.error


def test_condition_is_evaluated_last() -> None:
    decision = policy(rule("other-tool", tool_name="ship", **UNSURE)).judge(event())
    assert (decision.action, decision.error) == (Action.ALLOW, None)


def test_every_rule_that_cannot_be_judged_is_named() -> None:
    decision = policy(rule("one", **UNSURE), rule("two", **UNSURE)).judge(event())
    assert decision.error is not None
    assert "rule one" in decision.error
    assert "rule two" in decision.error


def test_judge_in_doubt_uses_the_terms_of_the_asking_rule() -> None:
    terms = {"reviewers": ["anna", "ben"], "quorum": {"approve": 2}}
    payload = {"allow_edit": False}
    asking = rule("ask", "request_approval", priority=200, request_payload=payload, terms=terms, **UNSURE)
    for others in ((), (rule("unsure", "allow", priority=300, **UNSURE),)):
        decision = policy(asking, *others, rule("open", "allow", priority=1)).judge(event())
        assert decision.terms.reviewers == ("anna", "ben")
        assert decision.terms.quorum == Quorum(approve=2)
        assert decision.request_payload == RequestPayload(allow_edit=False)


def test_judge_in_doubt_uses_the_terms_of_the_next_match() -> None:
    unsure, asking = (
        rule("unsure", "allow", priority=200, **UNSURE),
        rule("ask", "defer", terms={"reviewers": ["anna"]}),
    )
    assert policy(unsure, asking).judge(event()).terms.reviewers == ("anna",)


@pytest.mark.parametrize(
    "rule_in_doubt",
    [
        rule("a", "request_approval", terms={"unattended_approval": True, "fallback": {"action": "approve"}}, **UNSURE),
        rule(
            "a",
            "request_user_input",
            request_payload={"target_arg": "code"},
            terms={"fallback": {"action": "value", "value": 1}},
            **UNSURE,
        ),
    ],
)
def test_fallback_in_doubt_never_approves(rule_in_doubt: PolicyRule) -> None:
    decision = policy(rule_in_doubt).judge(event())
    assert decision.action is Action.REQUEST_APPROVAL
    assert decision.terms.fallback == Fallback(action=FallbackAction.DENY)
    assert not decision.terms.unattended_approval
    assert decision.request_payload is None


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def looped() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


@pytest.mark.parametrize(
    "flaw",
    [
        float("nan"),
        float("inf"),
        "\ud800",
        {1, 2},
        object(),
        b"bytes",
        {1: 2},
        10**MAX_DIGITS,
        nested(40),
        nested(100_000),
        looped(),
        [0] * 30_000,
    ],
    ids=["nan", "inf", "surrogate", "set", "object", "bytes", "key", "big", "deep", "abyss", "loop", "long"],
)
@pytest.mark.parametrize("part", ["tool_args", "context", "metadata"])
def test_judge_of_invalid_json_asks(flaw: Any, part: str) -> None:
    for rules in ((), (rule("open", "allow"),), (rule("amounts", "deny", when="args.x > 1"), rule("open", "allow"))):
        decision = policy(*rules).judge(event(**{part: {"x": flaw}}))
        assert decision.action is Action.REQUEST_APPROVAL
        assert decision.error


@pytest.mark.parametrize("part", ["tool_args", "context", "metadata"])
@pytest.mark.parametrize("number", [2**70, -(2**70), 10**MAX_DIGITS - 1], ids=["large", "negative", "most digits"])
def test_large_integer_that_no_condition_reads_is_judged(number: int, part: str) -> None:
    for rules in ((), (rule("open", "allow"),)):
        decision = policy(*rules).judge(event(**{part: {"x": number}}))
        assert (decision.action, decision.error) == (Action.ALLOW, None)


@pytest.mark.parametrize("number", [2**70, -(2**70)], ids=["large", "negative"])
def test_large_integer_that_a_condition_compares_asks(number: int) -> None:
    amounts = rule("amounts", "deny", when="args.x > 1")
    decision = policy(amounts, rule("open", "allow")).judge(event(tool_args={"x": number}))
    assert decision.action is Action.REQUEST_APPROVAL
    assert decision.error is not None
    assert decision.error.startswith(f"rule amounts: Integer value '{number}' out of range")


class Foreign:
    """Neither a decision nor an event."""

    def __getattr__(self, name: str) -> Any:
        raise (AttributeError if name.startswith("_") else RuntimeError)(f"no {name} here")


@pytest.mark.parametrize("thing", [None, 1, "event", Foreign(), {}])
def test_judge_without_event_asks(thing: Any) -> None:
    decision = policy(rule("open", "allow")).judge(thing)
    assert decision.action is Action.REQUEST_APPROVAL
    assert decision.error


class FaultyPolicy(Policy):
    """A policy whose evaluation returns or raises `outcome`."""

    outcome: Any = None

    def _try_rules(self, case: Any) -> dict[str, Any]:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        "allow",
        True,
        Action.ALLOW,
        broken(PolicyDecision, action="permit", reason="", rule_version=""),
        broken(PolicyDecision, reason="", rule_version=""),
        ValueError("broken"),
        RecursionError(),
        MemoryError(),
        KeyError("x"),
    ],
)
def test_judge_with_invalid_outcome_asks(outcome: Any) -> None:
    decision = FaultyPolicy(default=Action.ALLOW, outcome=outcome).judge(event())
    assert decision.action is Action.REQUEST_APPROVAL
    assert decision.error


FAULTS: dict[str, dict[str, Any]] = {
    "no condition": {"condition": None},
    "foreign condition": {"condition": Foreign()},
    "unknown action": {"action": "permit"},
    "foreign action": {"action": Foreign()},
    "foreign terms": {"terms": "none"},
    "foreign payload": {"request_payload": 3},
    "subjects of another kind": {"subjects": 3},
    "condition that never compiled": {"condition": RuleCondition.model_construct(when="tol ==")},
    "condition of another kind": {"condition": broken(RuleCondition, when=["x"])},
    "pattern of another kind": {"condition": broken(RuleCondition, tool_name_pattern=3)},
    "condition that is no bool": {"condition": RuleCondition.model_construct(when="args")},
}


@given(
    fault=st.sampled_from(sorted(FAULTS)),
    action=st.sampled_from(list(Action)),
    others=st.permutations([rule("y", "allow"), rule("z", "allow", priority=50)]),
    default=st.sampled_from([Action.ALLOW, Action.DENY, Action.REQUEST_APPROVAL]),
)
def test_faulty_rule_never_allows(fault: str, action: Action, others: list[PolicyRule], default: Action) -> None:
    given = {"rule_id": "a", "action": action, "priority": 500} | FAULTS[fault]
    faulty = broken(PolicyRule, **given)
    rules = Policy.model_construct(rules=(faulty, *others), default=default, terms=RuleTerms())
    decision = rules.judge(event(amount=1))
    assert decision.error
    assert decision.action is Action.REQUEST_APPROVAL
