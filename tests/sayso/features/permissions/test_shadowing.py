"""What grants on probation would allow is recorded with the judgement, and changes nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import UNIT, Reading, name_scope
from sayso.core.policy.decisions import PolicyDecision, build_item, describe_judged
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.envelopes import Constraint, ConstraintKind
from sayso.core.records.permissions import Denial, Grant, Learned
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.features.permissions.grants import digest_rest, digest_rule
from tests.sayso.rule_builders import event, policy, rule

GRANTS: dict[str, Any] = {"longest": "7d", "learn": {"after": 3}}
RULES = policy(rule("refunds", "request_approval", tool_name="refund", when="args.amount > 10", grants=GRANTS))
FACTS: dict[str, Any] = {"started_by": "desk", "definition": "d1", "subagent_name": ""}
CALL: JsonObject = {"customer": "C-77", "amount": 100}
LIMITS = (
    Constraint(path="args.amount", kind=ConstraintKind.AT_MOST, value=200 * UNIT),
    Constraint(path="args.customer", kind=ConstraintKind.EQUAL, value="C-77"),
)
ANNA = Actor(id="anna", kind=ActorKind.HUMAN)
TOOL = ToolDefinition(name="refund")


def make(**fields: Any) -> Grant:
    found: dict[str, Any] = {
        "id": "gra_1",
        "rule_id": "refunds",
        "rule_digest": digest_rule(RULES.rules[0]),
        "agent": "support",
        "owner": "desk",
        "subagent": "",
        "tool": "refund",
        "definition": "d1",
        "constraints": LIMITS,
        "rest_digest": digest_rest(CALL, LIMITS),
        "at_ms": 1_000,
        "until_ms": 3_601_000,
        "granters": (),
        "suspension_id": "sus_1",
        "item_id": "i1",
        "learned": Learned(like="l", approvals=3, proposed_at_ms=1_000, probation=2, lasts_s=60),
    }
    return Grant(**found | fields)


def judge(args: dict[str, Any], *grants: Grant, rules: Policy = RULES, **facts: Any) -> PolicyDecision:
    about = event("refund", tool_args=args, **FACTS | facts)
    return Ledger(rules, {name_scope("refunds", "support"): Reading(grants=grants)}).judge(about)


def would_allow(decision: PolicyDecision) -> tuple[str, ...]:
    return decision.learning.would_allow if decision.learning is not None else ()


def test_judgement_records_what_would_have_been_allowed() -> None:
    decision = judge(CALL, make(), make(id="gra_0"))
    assert (decision.action, would_allow(decision)) == (Action.REQUEST_APPROVAL, ("gra_0", "gra_1"))
    call = ToolCall(call_id="c", index=0, name="refund", args=CALL)
    assert describe_judged(call, decision, TOOL).data["would_allow"] == ["gra_0", "gra_1"]
    assert build_item(TOOL, call, decision).learning == decision.learning


@pytest.mark.parametrize("fields", [{"people": 2, "granters": (ANNA,)}, {}])
def test_grant_without_enough_people_is_tried_and_allows_nothing(fields: dict[str, Any]) -> None:
    decision = judge(CALL, make(**fields))
    assert (decision.action, would_allow(decision)) == (Action.REQUEST_APPROVAL, ("gra_1",))


@pytest.mark.parametrize(
    "fields",
    [{"rule_digest": "0" * 64}, {"definition": "d2"}, {"owner": "other"}, {"subagent": "helper"}, {"learned": None}],
)
def test_other_grant_is_not_tried(fields: dict[str, Any]) -> None:
    assert would_allow(judge(CALL, make(**fields))) == ()


def test_suspended_grant_covers_nothing_even_if_people_granted_it() -> None:
    denial = Denial(by="anna", at_ms=5, suspension_id="sus_1", item_id="i1")
    assert judge(CALL, make(granters=(ANNA,), denial=denial)).action is Action.REQUEST_APPROVAL


def test_call_in_doubt_or_of_another_rule_teaches_nothing() -> None:
    doubtful = policy(*RULES.rules, rule("doubt", "deny", priority=50, tool_name="refund", when="args.missing > 1"))
    plain = policy(rule("refunds", "request_approval", tool_name="refund", grants={"longest": "7d"}))
    assert judge(CALL, make(), rules=doubtful).learning is None
    assert judge(CALL, make(), rules=plain).learning is None
    assert judge({**CALL, "amount": 5}, make()).learning is None


ARGS = st.dictionaries(
    st.sampled_from(["customer", "amount", "note"]),
    st.one_of(st.integers(-5, 400), st.sampled_from(["C-77", "C-78", "150", "1e2"]), st.booleans(), st.none()),
    max_size=3,
)


@given(args=ARGS)
def test_probation_never_changes_a_decision(args: dict[str, Any]) -> None:
    tried, plain = judge(args, make()), judge(args)
    assert tried.model_copy(update={"learning": None}) == plain.model_copy(update={"learning": None})
    if would_allow(tried):
        assert args.keys() == {"customer", "amount"}
        assert args["customer"] == "C-77"
        assert 10 < float(args["amount"]) <= 200
