"""What a grant covers of the arguments that it does not limit: exactly those of the approved call, or what it names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sayso.core.canonical_json import digest_json
from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import Reading, list_counters, name_scope
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.envelopes import GrantRequest
from sayso.core.records.permissions import Grant
from sayso.errors import InvalidInput
from sayso.features.permissions.grants import digest_rule
from sayso.features.permissions.making import limit_grant
from sayso.features.permissions.text import write_grant
from tests.sayso.rule_builders import event, policy, rule

RULE = rule("cache", "request_approval", grants={"longest": "1d"})
RULES = policy(RULE, default=Action.REQUEST_APPROVAL)
FACTS: dict[str, Any] = {"started_by": "desk", "definition": "d1", "subagent_name": ""}
ABOUT: dict[str, Any] = {
    "id": "gra_1",
    "rule_id": "cache",
    "rule_digest": digest_rule(RULES.rules[0]),
    "agent": "support",
    "owner": "desk",
    "subagent": "",
    "tool": "purge_cache",
    "definition": "d1",
    "at_ms": 0,
    "until_ms": 3_600_000,
    "granters": (Actor(id="anna", kind=ActorKind.HUMAN),),
    "suspension_id": "sus_1",
    "item_id": "i1",
}


def make(args: dict[str, Any], **asked: Any) -> Grant:
    """Return the grant of a decision on a call with these arguments."""
    request = GrantRequest.model_validate({"for_s": 3600, **asked})
    limits = limit_grant(RULES.rules[0], RULES.rules[0].grants, request, args, (), 0)  # type: ignore[arg-type]
    return Grant(**ABOUT | limits)


def judge(grant: Grant, args: dict[str, Any]) -> PolicyDecision:
    about = event("purge_cache", tool_args=args, **FACTS)
    readings = {one.counter: Reading() for one in RULES.list_wanted(about)}
    readings |= {name_scope("cache", "support"): Reading(grants=(grant,))}
    readings |= {one.counter: Reading() for one in list_counters(grant)}
    return Ledger(RULES, readings).judge(about)


def runs(grant: Grant, args: dict[str, Any]) -> bool:
    return judge(grant, args).action is Action.ALLOW


REFUND = {"customer": "C-1", "amount": 10}
NESTED = {"order": {"id": 7, "lines": [{"sku": "a"}], "note": None}}


@pytest.mark.parametrize(
    ("granted", "then"),
    [
        ({}, {"scope": "everything", "force": True}),
        ({}, {"scope": None}),
        ({}, {"scope": {}}),
        (REFUND, {**REFUND, "payout_to": "X"}),
        (REFUND, {**REFUND, "payout_to": None}),
        (REFUND, {"customer": "C-1"}),
        (REFUND, {**REFUND, "customer": ["C-1"]}),
        (NESTED, {"order": {**NESTED["order"], "rush": True}}),
        (NESTED, {"order": {"id": 7, "lines": [{"sku": "a"}]}}),
        (NESTED, {"order": {**NESTED["order"], "lines": [{"sku": "a", "qty": 2}]}}),
        (NESTED, {"order": {**NESTED["order"], "lines": [{"sku": "a"}, {"sku": "b"}]}}),
        (NESTED, {"order": {**NESTED["order"], "id": "7"}}),
    ],
)
@pytest.mark.parametrize("limited", [True, False])
def test_call_with_arguments_that_nobody_saw_is_asked(
    granted: dict[str, Any], then: dict[str, Any], limited: bool
) -> None:
    known = {"customer": ["args.customer"], "order": ["args.order.id"]}
    same = [path for name in granted for path in known.get(name, [])] if limited else []
    grant = make(granted, same=same)
    assert runs(grant, granted)
    decision = judge(grant, then)
    assert decision.action is Action.REQUEST_APPROVAL


def test_reason_names_the_argument_that_a_grant_does_not_name() -> None:
    said = judge(make({}), {"scope": "everything"}).reason
    assert said.endswith(" Grant gra_1 does not cover it: it does not name args.scope.")
    said = judge(make(REFUND, same=["args.customer"]), {**REFUND, "amount": 11}).reason
    assert said.endswith("the arguments that it does not limit must stay as they were.")


def test_named_argument_may_vary_or_be_missing() -> None:
    grant = make(REFUND, free=["args.note", "args.order.note"])
    free: list[dict[str, Any]] = [{}, {"note": "x"}, {"note": None}, {"order": {"note": [1]}}, {"note": {"a": 1}}]
    others: list[dict[str, Any]] = [{"payout_to": "X"}, {"order": {"note": 1, "id": 2}}, {"order": 1}, {"Note": "x"}]
    for further in free:
        assert runs(grant, {**REFUND, **further}), further
    for further in others:
        assert not runs(grant, {**REFUND, **further}), further
    assert not runs(grant, {**REFUND, "amount": 11})


def test_any_arguments_must_be_named_as_a_whole() -> None:
    assert runs(make({}, free=["args"]), {"scope": "everything", "force": True})
    limited = make(REFUND, free=["args"], same=["args.customer"])
    assert runs(limited, {"customer": "C-1", "payout_to": "X"})
    assert not runs(limited, {"customer": "C-2"})


@pytest.mark.parametrize(
    ("grant", "scope", "words"),
    [
        (make({}), "none", "with no arguments at all, any"),
        (make({}, free=["args"]), "any", "with any arguments, any"),
        (make(REFUND), "exact", "with the same arguments, any"),
        (make(REFUND, same=["args.customer"]), "exact", 'with customer "C-1" and otherwise the same arguments, any'),
        (make({"a": 1}, same=["args.a"]), "exact", "with a 1 and no other arguments, any"),
        (
            make({"a": 1}, same=["args.a"], free=["args.b"]),
            "exact",
            "a 1, any or no b and no other arguments, any",
        ),
        (make({"a": 1}, same=["args.a"], free=["args"]), "any", "with a 1 and any other arguments, any"),
    ],
)
def test_sentence_tells_no_arguments_from_any(grant: Grant, scope: str, words: str) -> None:
    assert grant.scope == scope
    assert words in write_grant(grant)


def test_grant_in_the_form_of_before_covers_what_it_names_alone() -> None:
    raw = make(REFUND, same=["args.customer"]).model_dump(mode="json", exclude={"rest_digest", "free"})
    before = Grant.model_validate(raw)
    assert runs(before, {"customer": "C-1"})
    decision = judge(before, REFUND)
    assert decision.action is Action.REQUEST_APPROVAL
    assert "Grant gra_1 does not cover it: it does not name args.amount, and" in decision.reason
    assert decision.reason.endswith("Grant such calls again.")
    assert "no other arguments, as it was given before grants named them all" in write_grant(before)
    nothing = Grant.model_validate({**raw, "constraints": []})
    assert runs(nothing, {})
    assert not runs(nothing, {"scope": "everything"})


@pytest.mark.parametrize(
    "asked",
    [
        {"free": ["args.customer"], "same": ["args.customer"]},
        {"free": ["args.order"], "equal": {"args.order.id": 1}},
        {"free": ["args.order.id"], "at_most": {"args.order": 1}},
    ],
)
def test_limited_argument_cannot_be_free(asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="cannot be free"):
        GrantRequest.model_validate({"for_s": 3600, **asked})


def test_argument_that_the_rule_binds_cannot_be_free() -> None:
    bound = rule("cache", "request_approval", grants={"longest": "1d", "by": ["args.customer"]})
    request = GrantRequest.model_validate({"for_s": 3600, "free": ["args.customer"]})
    with pytest.raises(InvalidInput, match="by the rule"):
        limit_grant(bound, bound.grants, request, REFUND, (), 0)  # type: ignore[arg-type]


ARGS = st.dictionaries(
    st.sampled_from(["a", "b", "A"]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "1"]),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "c"]), inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)


@given(granted=ARGS, then=ARGS)
def test_grant_without_free_arguments_covers_the_same_call_alone(granted: dict[str, Any], then: dict[str, Any]) -> None:
    assert runs(make(granted), then) == (digest_json(granted) == digest_json(then))
