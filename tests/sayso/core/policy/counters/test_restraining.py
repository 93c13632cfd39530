"""Calls that a rule does not ask about again: those that a person has denied, and those beyond its caps."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import Reading, Readings
from sayso.core.policy.counters.restraining import name_denials
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.policy.rules import Action, PolicyRule
from sayso.core.records.decisions import EarlierDenial
from sayso.core.sentences.rules import describe_rule
from tests.sayso.rule_builders import UNSURE, event, policy, rule

ARGS: dict[str, Any] = {"customer": "D-1", "amount": 5}


def never(**fields: Any) -> EarlierDenial:
    found: dict[str, Any] = {"by": "anna", "at_ms": 1, "message": "never for D-1", "run_id": "run_1", "thread_id": "t1"}
    return EarlierDenial(**found | fields)


def denying(**parts: Any) -> Policy:
    return policy(rule("refunds", "request_approval", tool_name="refund", after_denial="deny", **parts))


def judge(rules: Policy, *denials: EarlierDenial, args: dict[str, Any] | None = None, **facts: Any) -> Any:
    known: Readings = {name_denials("desk", "refund", ARGS): Reading(denials=denials)}
    about = event(
        "refund", tool_args=ARGS if args is None else args, **{"started_by": "desk", "thread_id": "t1"} | facts
    )
    return Ledger(rules, known).judge_request(about)


def test_denied_call_is_denied_again_with_the_first_reason() -> None:
    decision = judge(denying(), never(), never(at_ms=9, by="ben", message="no"))
    assert (decision.action, decision.policy_id, decision.restrained) == (Action.DENY, "refunds", True)
    assert decision.reason == (
        "anna has denied this very call before: never for D-1. It stays denied in this run and its thread. Request "
        "another call, or go on without it."
    )


@pytest.mark.parametrize(
    ("facts", "denied"),
    [
        ({}, True),
        ({"subagent_name": "helper"}, True),
        ({"run_id": "run_2"}, True),
        ({"thread_id": "t2"}, True),
        ({"agent": "other"}, True),
        ({"run_id": "run_2", "thread_id": "t2"}, False),
        ({"run_id": "run_2", "thread_id": None}, False),
        ({"started_by": "other"}, False),
        ({"args": {"amount": 5.0, "customer": "D-1"}}, True),
        ({"args": {**ARGS, "amount": 6}}, False),
        ({"args": {**ARGS, "note": None}}, False),
    ],
)
def test_denial_holds_for_the_run_its_subagents_and_thread(facts: dict[str, Any], denied: bool) -> None:
    assert (judge(denying(), never(), **facts).action is Action.DENY) is denied


@pytest.mark.parametrize("stated", [{}, {"after_denial": "ask"}])
def test_denied_call_is_asked_again_unless_the_rule_denies_it(stated: dict[str, Any]) -> None:
    rules = policy(rule("refunds", "request_approval", tool_name="refund", **stated))
    assert judge(rules, never()).action is Action.REQUEST_APPROVAL


def test_denied_call_that_cannot_be_evaluated_stays_denied() -> None:
    doubtful = policy(rule("refunds", "request_approval", tool_name="refund", after_denial="deny", when="args.x > 1"))
    decision = judge(doubtful, never())
    assert decision.action is Action.DENY
    assert judge(doubtful).in_doubt is not None, "without a denial a person is asked"


@pytest.mark.parametrize("value", [object(), float("nan"), "\ud800"])
def test_call_whose_arguments_are_not_json_is_asked_about(value: object) -> None:
    rules, about = denying(), event("refund", tool_args={"x": value})
    assert list(rules.list_wanted(about)) == []
    assert Ledger(rules, {}).judge_request(about).action is Action.REQUEST_APPROVAL


def test_approved_call_is_not_held_back_when_it_starts() -> None:
    about = event("refund", tool_args=ARGS, started_by="desk", thread_id="t1")
    capped = policy(rule("refunds", "request_approval", tool_name="refund", after_denial="deny", asks={"per_run": 1}))
    readings = {one.counter: Reading(total=1, denials=(never(),)) for one in capped.list_wanted(about)}
    ledger = Ledger(capped, readings)
    assert ledger.judge_start(about).action is Action.REQUEST_APPROVAL
    assert ledger.judge_request(about).action is Action.DENY


def test_calls_of_one_turn_count_for_each_other() -> None:
    capped = policy(rule("refunds", "request_approval", tool_name="refund", asks={"per_run": 2, "per_minute": 9}))
    about = event("refund", tool_args=ARGS, started_by="desk")
    ledger = Ledger(capped, {one.counter: Reading() for one in capped.list_wanted(about)})
    decisions = [ledger.judge_request(about) for _ in range(4)]
    assert [one.action for one in decisions] == [Action.REQUEST_APPROVAL] * 2 + [Action.DENY] * 2
    assert "asks people about 2 calls of a run at most, and this run has reached that" in decisions[2].reason
    assert [(one.per_s, one.most) for one in decisions[0].asked] == [(2_592_000, 2), (60, 9)]


def test_call_that_cannot_be_evaluated_counts_for_the_rules_it_may_be_about() -> None:
    capped = policy(rule("refunds", "request_approval", tool_name="refund", asks={"per_minute": 1}, **UNSURE))
    about = event("refund", tool_args={"amount": "x"}, started_by="desk")
    ledger = Ledger(capped, {one.counter: Reading() for one in capped.list_wanted(about)})
    assert [ledger.judge_request(about).action for _ in range(2)] == [Action.REQUEST_APPROVAL, Action.DENY]


@pytest.mark.parametrize("stated", [{"after_denial": "deny"}, {"asks": {"per_run": 1}}])
@pytest.mark.parametrize("action", ["allow", "deny"])
def test_rule_that_asks_nobody_cannot_have_them(stated: dict[str, Any], action: str) -> None:
    with pytest.raises(ValidationError, match="only a rule that asks can have"):
        rule("refunds", action, **stated)


@pytest.mark.parametrize("asks", [{}, {"per_run": 0}, {"per_hour": 3}, {"per_minute": 10_001}])
def test_caps_that_say_nothing_are_refused(asks: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rule("refunds", "request_approval", asks=asks)


def test_rule_says_what_it_does_with_repeated_requests() -> None:
    text = """
version: 1
default: allow
rules: [{id: r, tool: refund, action: request_approval, after_denial: deny, asks: {per_run: 20, per_minute: 10}}]
"""
    (stated,) = parse_rulebook(text.encode(), file="rules.yaml").rules
    said = describe_rule(stated)
    assert "A call that a person has denied stays denied in its run and thread." in said
    assert "It asks about at most 20 a run and 10 a minute; further calls are denied." in said


def test_rule_without_the_keys_has_the_digest_of_before() -> None:
    dumped = PolicyRule(rule_id="r", action=Action.REQUEST_APPROVAL).model_dump(mode="json")
    assert not {"asks", "after_denial"} & dumped.keys()
