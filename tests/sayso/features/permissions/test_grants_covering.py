"""Which calls a grant covers: only those of its sentence, and only while enough is left."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import UNIT, Reading, list_counters, name_scope
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.envelopes import Constraint, ConstraintKind
from sayso.core.records.permissions import Grant, GrantSum
from sayso.features.permissions.grants import digest_rest, digest_rule
from tests.sayso.rule_builders import event, policy, rule

GRANTS = {"longest": "7d", "count": 50, "sum": {"of": "args.amount", "max": "5000"}, "by": ["args.customer"]}
RULES = policy(rule("refunds", "request_approval", tool_name="refund", when="args.amount > 10", grants=GRANTS))
ASKING = policy(RULES.rules[0], default=Action.REQUEST_APPROVAL)
FACTS: dict[str, Any] = {"started_by": "desk", "definition": "d1", "subagent_name": ""}
CALL = {"customer": "C-77", "amount": 100}


def constrain(path: str, kind: ConstraintKind, value: Any) -> Constraint:
    return Constraint(path=path, kind=kind, value=value)


CUSTOMER = constrain("args.customer", ConstraintKind.EQUAL, "C-77")
AT_MOST_200 = constrain("args.amount", ConstraintKind.AT_MOST, 200 * UNIT)


def make(rules: Policy = RULES, **fields: Any) -> Grant:
    found: dict[str, Any] = {
        "id": "gra_1",
        "rule_id": "refunds",
        "rule_digest": digest_rule(rules.rules[0]),
        "agent": "support",
        "owner": "desk",
        "subagent": "",
        "tool": "refund",
        "definition": "d1",
        "constraints": (CUSTOMER, AT_MOST_200),
        "count": 10,
        "sum": GrantSum(of="args.amount", max=500 * UNIT),
        "at_ms": 1_000,
        "until_ms": 3_601_000,
        "granters": (Actor(id="anna", kind=ActorKind.HUMAN),),
        "suspension_id": "sus_1",
        "item_id": "i1",
    }
    return Grant(**found | fields)


def judge(
    grant: Grant, args: dict[str, Any], rules: Policy = RULES, calls: int = 0, total: int = 0, **facts: Any
) -> PolicyDecision:
    about = event(facts.pop("tool", "refund"), tool_args=args, **FACTS | facts)
    readings = {one.counter: Reading() for one in rules.list_wanted(about)}
    readings |= {name_scope(grant.rule_id, grant.agent): Reading(grants=(grant,))}
    held = {grant.count_counter: calls, grant.sum_counter: total * UNIT}
    readings |= {one.counter: Reading(total=held[one.counter]) for one in list_counters(grant)}
    return Ledger(rules, readings).judge(about)


def test_covered_call_runs_and_is_charged() -> None:
    decision = judge(make(), CALL, calls=9, total=400)
    assert (decision.action, decision.policy_id) == (Action.ALLOW, "refunds")
    assert decision.grant == make()
    assert decision.reason == "Grant gra_1, given by anna, allows it."
    spent = {one.counter: (one.amount, one.most) for one in decision.due_charges}
    assert spent == {"grant.gra_1.count": (1, 10), "grant.gra_1.sum": (100 * UNIT, 500 * UNIT)}


@pytest.mark.parametrize(
    "args",
    [
        {"customer": "C-78", "amount": 100},
        {"customer": "c-77", "amount": 100},
        {"customer": ["C-77"], "amount": 100},
        {"amount": 100},
        {"customer": "C-77", "amount": 200.01},
        {"customer": "C-77", "amount": 10**30},
    ],
)
def test_call_outside_the_constraints_is_asked(args: dict[str, Any]) -> None:
    assert judge(make(), args).action is Action.REQUEST_APPROVAL


@pytest.mark.parametrize(
    "facts",
    [
        {"agent": "other"},
        {"started_by": "other"},
        {"started_by": None},
        {"subagent_name": "helper"},
        {"subagent_name": None},
        {"definition": "d2"},
        {"definition": None},
    ],
)
def test_call_of_another_agent_or_tool_is_asked(facts: dict[str, Any]) -> None:
    assert judge(make(), CALL, **facts).action is Action.REQUEST_APPROVAL


@pytest.mark.parametrize(("calls", "total"), [(10, 0), (0, 401)])
def test_call_beyond_what_is_left_is_asked(calls: int, total: int) -> None:
    assert judge(make(), CALL, calls=calls, total=total).action is Action.REQUEST_APPROVAL


@pytest.mark.parametrize(
    "fields",
    [
        {"people": 2},
        {"each_of": ("group:finance",)},
        {"revoked_at_ms": 5, "revoked_by": "ben"},
        {"rule_digest": "0" * 64},
        {"rule_id": "other"},
        {"rest_digest": digest_rest({"other": 1}, (CUSTOMER, AT_MOST_200))},
    ],
)
def test_grant_that_is_not_in_force_covers_nothing(fields: dict[str, Any]) -> None:
    assert judge(make(**fields), CALL).action is Action.REQUEST_APPROVAL


def test_grant_does_not_outlive_a_change_of_its_rule() -> None:
    changed = rule("refunds", "request_approval", tool_name="refund", when="args.amount > 11", grants=GRANTS)
    assert judge(make(), CALL, policy(changed)).action is Action.REQUEST_APPROVAL


def test_look_alike_name_is_not_covered() -> None:
    decision = judge(make(tool="Refund"), CALL, tool="Refund")
    assert decision.action is Action.REQUEST_APPROVAL


def test_call_that_rules_cannot_evaluate_is_not_covered() -> None:
    doubtful = rule("doubt", "deny", priority=50, tool_name="refund", when="args.missing > 1")
    rules = policy(*RULES.rules, doubtful)
    assert judge(make(), CALL, rules).action is Action.REQUEST_APPROVAL


def test_denial_is_never_covered() -> None:
    rules = policy(*RULES.rules, rule("no", "deny", priority=500, when="args.amount > 50"))
    assert judge(make(), CALL, rules).action is Action.DENY


def test_call_of_another_rule_is_asked() -> None:
    rules = policy(*RULES.rules, rule("big", "request_approval", priority=500, when="args.amount > 50", grants=GRANTS))
    assert judge(make(), CALL, rules).action is Action.REQUEST_APPROVAL


def test_approved_call_takes_nothing_of_a_grant() -> None:
    about = event("refund", tool_args=CALL, **FACTS)
    grant = make()
    readings = {name_scope("refunds", "support"): Reading(grants=(grant,))}
    readings |= {one.counter: Reading() for one in list_counters(grant)}
    assert Ledger(RULES, readings).judge_start(about).due_charges == ()


def test_calls_of_one_turn_count_for_each_other() -> None:
    about, grant = event("refund", tool_args=CALL, **FACTS), make(count=2)
    readings = {name_scope("refunds", "support"): Reading(grants=(grant,))}
    ledger = Ledger(RULES, readings | {one.counter: Reading() for one in list_counters(grant)})
    actions = [ledger.judge(about).action for _ in range(3)]
    assert actions == [Action.ALLOW, Action.ALLOW, Action.REQUEST_APPROVAL]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["C-77", "C-78", "100", "200.00", "201", "1e2", " C-77", "-5", ""]),
    st.lists(st.sampled_from(["C-77", 100]), max_size=2),
)
ARGS = st.dictionaries(st.sampled_from(["customer", "amount", "note", "Amount"]), VALUES, max_size=4)


@given(args=ARGS, calls=st.integers(0, 11), total=st.integers(0, 501))
def test_no_call_outside_the_sentence_passes(args: dict[str, Any], calls: int, total: int) -> None:
    decision: PolicyDecision = judge(
        make(), args, policy(RULES.rules[0], default=Action.REQUEST_APPROVAL), calls, total
    )
    if decision.action is not Action.ALLOW:
        return
    amount = float(args["amount"])
    assert args["customer"] == "C-77"
    assert not isinstance(args["amount"], bool)
    assert 0 <= amount <= 200
    assert calls < 10
    assert total + amount <= 500


@given(args=ARGS)
def test_offer_changes_only_what_it_names(args: dict[str, Any]) -> None:
    denied: dict[str, Any] = {"customer": "C-77", "amount": 900}
    offer = make(constraints=(AT_MOST_200,), rest_digest=digest_rest(denied, (AT_MOST_200,)), count=1, offered=True)
    decision = judge(offer, args, ASKING)
    if decision.action is Action.ALLOW:
        assert args.keys() == denied.keys()
        assert args["customer"] == "C-77"
        assert 0 <= float(args["amount"]) <= 200
