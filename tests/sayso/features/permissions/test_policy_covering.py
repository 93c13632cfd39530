"""Which calls a mandate covers: only those of its plan, only while enough is left, and all others are asked about."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.counters.assessing import name_assessment
from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import UNIT, Reading, list_mandate_counters, name_scope_of
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.envelopes import Constraint, ConstraintKind
from sayso.core.records.judgements import Assessment, Level
from sayso.core.records.permissions import Envelope, Grant, Mandate, MandatedTool, MandateSum, Outside
from sayso.core.records.suspensions import Who
from sayso.core.records.terms import Fallback, FallbackAction, RuleTerms
from sayso.features.permissions.grants import digest_rule
from tests.sayso.rule_builders import event, policy, rule

LIMITS = {"longest": "1d"}
PAYING = rule("payouts", "request_approval", tool_name="pay", mandates=LIMITS)
RULES = policy(
    PAYING,
    rule("large", "request_approval", priority=200, tool_name="pay", when="args.amount > 900"),
    rule("never", "deny", priority=300, when="'no' in args", absolute=True),
    rule("ask-value", "request_user_input", tool_name="pin", request_payload={"target_arg": "pin"}),
    default=Action.ALLOW,
    terms=RuleTerms(reviewers=("anna",)),
)
FACTS: dict[str, Any] = {"started_by": "desk", "thread_id": "t1", "definition": "d1", "subagent_name": ""}


def limit(path: str, kind: ConstraintKind, value: Any) -> Constraint:
    return Constraint(path=path, kind=kind, value=value)


TO_ANN = limit("args.to", ConstraintKind.EQUAL, "ann")
AT_MOST_300 = limit("args.amount", ConstraintKind.AT_MOST, 300 * UNIT)
PAY = MandatedTool(
    tool="pay",
    definition="d1",
    constraints=(TO_ANN, AT_MOST_300),
    free=("args.note",),
    count=4,
    sum=MandateSum(of="args.amount", max=500 * UNIT),
)
READ = MandatedTool(
    tool="read", definition="d1", constraints=(limit("args.path", ConstraintKind.WITHIN, "/srv"),), place=1
)
FETCH = MandatedTool(
    tool="fetch",
    definition="d1",
    constraints=(limit("args.url", ConstraintKind.HOSTS, ["a.example", "*.b.example"]),),
    place=2,
)
CALL = {"to": "ann", "amount": 100}


def make(*tools: MandatedTool, rules: dict[str, str] | None = None, run_id: str = "", **fields: Any) -> Mandate:
    permitted = {"payouts": digest_rule(PAYING)} if rules is None else rules
    envelope = Envelope(
        for_s=3600, count=10, sum=800 * UNIT, tools=tools or (PAY, READ, FETCH), rules=permitted, run_id=run_id
    )
    found: dict[str, Any] = {
        "id": "man_1",
        "agent": "support",
        "owner": "desk",
        "thread_id": "t1",
        "envelope": envelope,
        "at_ms": 1_000,
        "until_ms": 3_601_000,
        "granters": (Actor(id="anna", kind=ActorKind.HUMAN),),
        "suspension_id": "sus_1",
        "item_id": "i1",
    }
    return Mandate(**found | fields)


def judge(
    mandate: Mandate, tool: str, args: dict[str, Any], rules: Policy = RULES, *, spent: Any = None, **facts: Any
) -> PolicyDecision:
    about = event(tool, tool_args=args, **FACTS | facts)
    readings = {one.counter: Reading() for one in rules.list_wanted(about)}
    readings |= {name_scope_of(mandate): Reading(mandates=(mandate,))}
    held = spent or {}
    counters = list_mandate_counters(mandate, tool)
    readings |= {one.counter: Reading(total=held.get(one.counter.partition(".man_1.")[2], 0)) for one in counters}
    return Ledger(rules, readings).judge(about)


def test_call_inside_runs_and_is_charged() -> None:
    decision = judge(make(), "pay", CALL)
    assert (decision.action, decision.policy_id, decision.granted_by) == (Action.ALLOW, "payouts", "man_1")
    assert decision.reason == "Mandate man_1, approved by anna, allows it."
    assert decision.mandate == make().cut(PAY), "only the part that covers the call is kept"
    spent = {one.counter: (one.amount, one.most) for one in decision.due_charges}
    assert spent == {
        "grant.man_1.count": (1, 10),
        "grant.man_1.0.count": (1, 4),
        "grant.man_1.0.sum": (100 * UNIT, 500 * UNIT),
        "grant.man_1.sum": (100 * UNIT, 800 * UNIT),
    }


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("pay", {**CALL, "to": "Ann"}),
        ("pay", {**CALL, "amount": 300.01}),
        ("pay", {**CALL, "amount": -1}),
        ("pay", {**CALL, "cc": "eve"}),
        ("pay", {**CALL, "more": {}}),
        ("pay", {"to": "ann"}),
        ("read", {"path": "/srv/../etc/passwd"}),
        ("read", {"path": "srv/a"}),
        ("read", {"path": ["/srv/a", "/etc/b"]}),
        ("read", {}),
        ("fetch", {"url": "https://b.example/"}),
        ("fetch", {"url": "https://a.example.evil.example/"}),
        ("fetch", {"url": "https://eve@a.example/"}),
        ("fetch", {"url": "ftp://a.example/"}),
        ("fetch", {"url": ["https://a.example/", "https://c.example/"]}),
        ("fetch", {"url": []}),
        ("other", {}),
    ],
)
def test_call_outside_is_asked_even_if_the_rules_allow_it(tool: str, args: dict[str, Any]) -> None:
    decision = judge(make(), tool, args)
    assert decision.action is Action.REQUEST_APPROVAL
    assert decision.reason.endswith("It is outside mandate man_1.")
    assert decision.due_charges == ()
    assert decision.mandate == make().cut()
    assert decision.terms.reviewers == (() if tool == "pay" else ("anna",))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("pay", {**CALL, "note": {"any": ["thing"]}}),
        ("read", {"path": "/srv/a/b.txt"}),
        ("fetch", {"url": "http://x.b.example:8080/?q=1"}),
        ("fetch", {"url": ["https://a.example/", "https://y.b.example/"]}),
    ],
)
def test_call_within_its_limits_runs(tool: str, args: dict[str, Any]) -> None:
    assert judge(make(), tool, args).action is Action.ALLOW


@pytest.mark.parametrize(
    "facts",
    [{"agent": "other"}, {"started_by": "other"}, {"started_by": None}, {"thread_id": "t2"}, {"thread_id": None}],
)
def test_call_of_another_conversation_meets_the_rules_alone(facts: dict[str, Any]) -> None:
    assert judge(make(), "pay", CALL, **facts).action is Action.REQUEST_APPROVAL
    assert judge(make(), "other", {}, **facts).action is Action.ALLOW


def test_call_for_another_person_is_outside() -> None:
    for_ann, for_ben = Who(person="ann"), Who(person="ben")
    assert judge(make(person="ann"), "pay", CALL, who=for_ann).action is Action.ALLOW
    assert judge(make(), "pay", CALL, who=Who(owner="cleo")).action is Action.ALLOW
    for mandate, who in ((make(person="ann"), for_ben), (make(person="ann"), None), (make(), for_ben)):
        assert judge(mandate, "pay", CALL, who=who).action is Action.REQUEST_APPROVAL
        assert judge(mandate, "read", {"path": "/srv/a"}, who=who).action is Action.REQUEST_APPROVAL


@pytest.mark.parametrize("facts", [{"definition": "d2"}, {"definition": None}, {"subagent_name": "helper"}])
def test_call_of_another_tool_or_subagent_is_outside(facts: dict[str, Any]) -> None:
    assert judge(make(), "read", {"path": "/srv/a"}, **facts).action is Action.REQUEST_APPROVAL


def test_subagent_is_covered_where_the_plan_names_it() -> None:
    named = READ.model_copy(update={"subagent": "helper"})
    assert judge(make(named), "read", {"path": "/srv/a"}, subagent_name="helper").action is Action.ALLOW


@pytest.mark.parametrize("spent", [{"count": 10}, {"0.count": 4}, {"0.sum": 401 * UNIT}, {"sum": 701 * UNIT}])
def test_call_beyond_what_is_left_is_asked(spent: dict[str, int]) -> None:
    assert judge(make(), "pay", CALL, spent=spent).action is Action.REQUEST_APPROVAL


def test_second_part_of_a_tool_covers_what_the_first_cannot() -> None:
    second = PAY.model_copy(update={"place": 1, "constraints": (TO_ANN,), "sum": None, "free": ("args.amount",)})
    assert judge(make(PAY, second), "pay", {**CALL, "amount": 400}).action is Action.ALLOW
    assert judge(make(PAY, second), "pay", CALL, spent={"0.count": 4}).action is Action.ALLOW


@pytest.mark.parametrize("args", [{}, {"cc": None}, {"bcc": None, "cc": None}, {"bcc": "eve"}])
def test_null_among_the_values_means_that_it_may_be_missing(args: dict[str, Any]) -> None:
    limits = (
        limit("args.cc", ConstraintKind.EQUAL, None),
        limit("args.bcc", ConstraintKind.ONE_OF, ["eve", None]),
    )
    mail = MandatedTool(tool="mail", definition="d1", constraints=limits)
    assert judge(make(mail), "mail", args).action is Action.ALLOW
    assert judge(make(mail), "mail", {**args, "cc": "eve"}).action is Action.REQUEST_APPROVAL


def test_rules_keep_what_they_do_not_permit() -> None:
    everything = MandatedTool(tool="pay", definition="d1", free=("args",))
    assert judge(make(everything), "pay", {"amount": 901}).policy_id == "large"
    assert judge(make(everything), "pay", {"amount": 901}).action is Action.REQUEST_APPROVAL
    assert judge(make(everything), "pay", {"amount": 1, "no": 1}).action is Action.DENY
    assert judge(make(everything), "pay", {"amount": 1}).action is Action.ALLOW
    value = MandatedTool(tool="pin", definition="d1", free=("args",))
    assert judge(make(value), "pin", {}).action is Action.REQUEST_USER_INPUT


@pytest.mark.parametrize("rules", [{}, {"payouts": "0" * 64}, {"other": digest_rule(PAYING)}])
def test_rule_that_did_not_permit_it_as_it_is_asks(rules: dict[str, str]) -> None:
    assert judge(make(rules=rules), "pay", CALL).action is Action.REQUEST_APPROVAL
    assert judge(make(rules=rules), "read", {"path": "/srv/a"}).action is Action.ALLOW


def test_call_that_rules_cannot_evaluate_is_not_covered() -> None:
    doubtful = policy(PAYING, rule("doubt", "deny", priority=500, tool_name="pay", when="args.missing > 1"))
    assert judge(make(), "pay", CALL, doubtful).action is Action.REQUEST_APPROVAL


@pytest.mark.parametrize(("level", "asked"), [(Level.LOW, False), (Level.HIGH, True)])
def test_call_to_which_an_assessor_adds_scrutiny_is_not_covered(level: Level, asked: bool) -> None:
    assessed = rule(
        "payouts", "request_approval", tool_name="pay", mandates=LIMITS, assess={"by": "fraud", "high": {"quorum": 2}}
    )
    rules, mandate = policy(assessed), make(rules={"payouts": digest_rule(assessed)})
    about = event("pay", tool_args=CALL, **FACTS)
    key = name_assessment("fraud", about)
    readings = {one.counter: Reading() for one in list_mandate_counters(mandate, "pay")}
    readings |= {name_scope_of(mandate): Reading(mandates=(mandate,))}
    readings[key] = Reading(assessment=Assessment(key=key, assessor="fraud", level=level))
    assert (Ledger(rules, readings).judge(about).action is Action.REQUEST_APPROVAL) is asked


def judge_assessed(mandate: Mandate, args: dict[str, Any], rules: Policy, **spent: int) -> PolicyDecision:
    """Judge a call that its assessor rates high."""
    about = event("pay", tool_args=args, **FACTS)
    key = name_assessment("fraud", about)
    readings = {one.counter: Reading() for one in list_mandate_counters(mandate, "pay")}
    readings |= {f"grant.man_1.{name}": Reading(total=total) for name, total in spent.items()}
    readings |= {name_scope_of(mandate): Reading(mandates=(mandate,))}
    readings[key] = Reading(assessment=Assessment(key=key, assessor="fraud", level=Level.HIGH))
    return Ledger(rules, readings).judge(about)


@pytest.mark.parametrize("action", ["request_approval", "allow"])
def test_call_that_an_assessor_raised_stays_inside_its_plan(action: str) -> None:
    assessed = rule("payouts", action, tool_name="pay", assess={"by": "fraud", "high": {"quorum": 2}})
    rules = policy(assessed, rule("other", "request_approval", tool_name="other", mandates=LIMITS))
    mandate = make(PAY)
    confined = mandate.model_copy(update={"envelope": mandate.envelope.model_copy(update={"outside": Outside.DENY})})
    inside = judge_assessed(confined, CALL, rules)
    assert (inside.action, inside.scrutinized) == (Action.REQUEST_APPROVAL, True)
    assert {one.counter: one.most for one in inside.due_charges}["grant.man_1.count"] == 10, "it counts once approved"
    assert judge_assessed(confined, {**CALL, "to": "eve"}, rules).action is Action.DENY
    assert judge_assessed(confined, CALL, rules, count=10).action is Action.DENY
    outside = judge_assessed(mandate, {**CALL, "to": "eve"}, rules)
    assert outside.action is Action.REQUEST_APPROVAL
    assert outside.reason.endswith("It is outside mandate man_1.")


def test_look_alike_name_is_not_covered() -> None:
    alike = MandatedTool(tool="Pay", definition="d1", free=("args",))
    assert judge(make(alike), "Pay", CALL).action is Action.REQUEST_APPROVAL


def test_mandate_of_a_run_covers_that_run_alone() -> None:
    assert judge(make(run_id="run_1"), "pay", CALL).action is Action.ALLOW
    assert judge(make(run_id="run_2"), "pay", CALL).action is Action.REQUEST_APPROVAL
    assert judge(make(run_id="run_2"), "other", {}).action is Action.ALLOW


def test_revoked_mandate_is_not_in_force() -> None:
    assert judge(make(revoked_at_ms=5, revoked_by="ben"), "pay", CALL).action is Action.REQUEST_APPROVAL
    assert judge(make(revoked_at_ms=5, revoked_by="ben"), "other", {}).action is Action.ALLOW


def test_nobody_approves_a_call_outside_by_default() -> None:
    lenient = RuleTerms(fallback=Fallback(action=FallbackAction.APPROVE), unattended_approval=True)
    silent = rule("payouts", "request_approval", tool_name="pay", mandates=LIMITS, terms=lenient)
    outside = judge(make(), "pay", {"to": "eve"}, policy(silent, default=Action.ALLOW, terms=lenient))
    assert outside.terms.fallback.action is FallbackAction.DENY


def test_rules_without_mandates_read_none() -> None:
    plain = policy(rule("payouts", "request_approval", tool_name="pay"))
    assert list(plain.list_wanted(event("pay", **FACTS))) == []
    assert judge(make(), "other", {}, plain).action is Action.ALLOW


def test_grant_does_not_reach_outside_a_mandate() -> None:
    both = rule("payouts", "request_approval", tool_name="pay", mandates=LIMITS, grants=LIMITS)
    rules, mandate = policy(both), make(READ, rules={"payouts": digest_rule(both)})
    about = event("pay", tool_args=CALL, **FACTS)
    grant = Grant(
        id="gra_1",
        rule_id="payouts",
        rule_digest=digest_rule(both),
        agent="support",
        owner="desk",
        subagent="",
        tool="pay",
        definition="d1",
        free=("args",),
        at_ms=1,
        until_ms=3_600_001,
        granters=mandate.granters,
        suspension_id="sus_1",
        item_id="i1",
    )
    readings = {one.counter: Reading(grants=(grant,)) for one in rules.list_wanted(about)}
    readings[grant.count_counter] = Reading()
    assert Ledger(rules, readings).judge(about).action is Action.ALLOW
    readings[name_scope_of(mandate)] = Reading(mandates=(mandate,))
    assert Ledger(rules, readings).judge(about).action is Action.REQUEST_APPROVAL


def test_plan_that_nobody_approved_widens_no_approved_one() -> None:
    everything = MandatedTool(tool="other", definition="d1", free=("args",))
    confining = make(everything, rules={}, id="man_2", granters=(), at_ms=500)
    assert judge(confining, "other", {}).action is Action.ALLOW
    about = event("other", tool_args={}, **FACTS)
    readings = {one.counter: Reading() for one in list_mandate_counters(confining, "other")}
    readings[name_scope_of(confining)] = Reading(mandates=(confining, make()))
    assert Ledger(RULES, readings).judge(about).action is Action.REQUEST_APPROVAL


def test_calls_of_one_turn_count_for_each_other() -> None:
    mandate, about = make(), event("pay", tool_args={**CALL, "amount": 200}, **FACTS)
    readings = {one.counter: Reading() for one in list_mandate_counters(mandate, "pay")}
    ledger = Ledger(RULES, readings | {name_scope_of(mandate): Reading(mandates=(mandate,))})
    assert [ledger.judge(about).action for _ in range(3)] == [Action.ALLOW, Action.ALLOW, Action.REQUEST_APPROVAL]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["ann", "Ann", "300", "300.01", "/srv/a", "/srv/../b", "https://a.example", "https://x.b.example/"]
    ),
    st.lists(st.sampled_from(["ann", 100, "/srv/a", "https://a.example/"]), max_size=2),
    st.dictionaries(st.sampled_from(["to", "x"]), st.integers(0, 3), max_size=1),
)
ARGS = st.dictionaries(st.sampled_from(["to", "amount", "note", "path", "url", "Amount", "no"]), VALUES, max_size=4)


@given(
    tool=st.sampled_from(["pay", "read", "fetch", "other", "Pay"]),
    args=ARGS,
    calls=st.integers(0, 11),
    total=st.integers(0, 801),
)
def test_no_call_outside_the_plan_passes(tool: str, args: dict[str, Any], calls: int, total: int) -> None:
    spent = {"count": calls, "0.count": calls, "sum": total * UNIT, "0.sum": total * UNIT}
    if judge(make(), tool, args, spent=spent).action is not Action.ALLOW:
        return
    assert calls < 10
    if tool == "pay":
        assert args.keys() <= {"to", "amount", "note"}
        assert args["to"] == "ann"
        assert not isinstance(args["amount"], bool)
        assert 0 <= float(args["amount"]) <= 300
        assert calls < 4
        assert total + float(args["amount"]) <= 500
    else:
        name = {"read": "path", "fetch": "url"}[tool]
        assert set(args) == {name}
        inside = ("/srv/a",) if tool == "read" else ("https://a.example", "https://x.b.example/", "https://a.example/")
        values = args[name] if isinstance(args[name], list) else [args[name]]
        assert values
        assert set(values) <= set(inside)
