"""What rules that remember calls decide, and what a call adds to their counters."""

from typing import Any

import pytest

from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.counters.readings import UNIT, Reading
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.suspensions import Who
from tests.sayso.rule_builders import event, policy, rule

HOUR = {"per": 3600}
BUDGET: dict[str, Any] = {"sum": "args.amount", "max": "100", **HOUR}
ASK = Action.REQUEST_APPROVAL


def judge(rules: Policy, total: int = 0, samples: int = 0, **args: Any) -> PolicyDecision:
    """Judge a refund where each counter holds `total`."""
    about = event(**args)
    readings = {one.counter: Reading(total=total, samples=samples) for one in rules.list_wanted(about)}
    return Ledger(rules, readings).judge(about)


def asking(action: str = "request_approval", **keys: Any) -> Policy:
    return policy(rule("r", action, **keys), default=Action.ALLOW)


def count_by_customer(customer: str) -> Ledger:
    """Return the counters after one call for a customer; a second one would be asked about."""
    rules = policy(rule("r", "allow", limit={"count": 1, **HOUR, "by": "args.customer"}), default=ASK)
    about = [event(customer=one) for one in (customer, "170")]
    ledger = Ledger(rules, {one.counter: Reading() for call in about for one in rules.list_wanted(call)})
    assert ledger.judge(about[0]).action is Action.ALLOW
    return ledger


@pytest.mark.parametrize(("before", "decides"), [(0, Action.ALLOW), (4, Action.ALLOW), (5, ASK), (9, ASK)])
def test_limit_allows_while_the_call_fits(before: int, decides: Action) -> None:
    rules = policy(rule("r", "allow", limit={"count": 5, **HOUR}), default=ASK)
    decision = judge(rules, before)
    assert decision.action is decides
    assert [(one.amount, one.most) for one in decision.due_charges] == ([(1, 5)] if decides is Action.ALLOW else [])
    assert decision.reason.endswith(" What rule r allows is used up.") == (decides is ASK)


@pytest.mark.parametrize(
    ("amount", "decides"), [(40, Action.ALLOW), ("40.00", Action.ALLOW), (40.01, ASK), (0, "allow")]
)
def test_budget_allows_while_the_sum_fits(amount: Any, decides: Action) -> None:
    rules = policy(rule("r", "allow", budget=BUDGET), default=ASK)
    assert judge(rules, 60 * UNIT, amount=amount).action == decides


def test_copy_of_a_call_counts_by_its_own_arguments() -> None:
    rules = policy(rule("r", "allow", limit={"count": 1, **HOUR, "by": "args.customer"}), default=ASK)
    about = event(customer="C17")
    (first,), (again,) = rules.list_wanted(about), rules.list_wanted(about.model_copy(update={"readings": {}}))
    (other,) = rules.list_wanted(about.model_copy(update={"tool_args": {"customer": "C18"}}))
    assert first == again != other
    changed = policy(rule("r", "allow", limit={"count": 2, **HOUR, "by": "agent"}), default=ASK)
    assert [*changed.list_wanted(about)] != [first], "another rule of this name reads the call itself"


@pytest.mark.parametrize("spelling", ["c17", " C17", "\uff23\uff11\uff17", "C\u200b17", "c17\u2003"], ids=ascii)
def test_limit_counts_other_spellings_together(spelling: str) -> None:
    ledger = count_by_customer("C17")
    decision = ledger.judge(event(customer=spelling))
    assert (decision.action, decision.error) == (ASK, None)


@pytest.mark.parametrize("number", [17, 17.0, "17", " 17 "])
def test_limit_counts_numbers_with_their_texts(number: Any) -> None:
    decision = count_by_customer("17").judge(event(customer=number))
    assert (decision.action, decision.error) == (ASK, None)
    assert count_by_customer("17").judge(event(customer=170)).action is Action.ALLOW


@pytest.mark.parametrize("accents", ["\u0301\u0323", "\u0f73"], ids=ascii)
def test_limit_by_a_text_with_stacked_accents_asks(accents: str) -> None:
    """Normalization sorts the accents of one letter in quadratic time: minutes in the event loop for 240 kB."""
    rules = policy(rule("r", "allow", limit={"count": 1, **HOUR, "by": "args.customer"}), default=ASK)
    decision = judge(rules, customer="a" + accents * 50_000)
    assert decision.action is ASK
    assert "dozens of accents on one letter" in str(decision.error)


@pytest.mark.parametrize("value", [["C17"], {"id": "C17"}])
def test_limit_by_a_list_or_object_asks(value: Any) -> None:
    decision = count_by_customer("C1").judge(event(customer=value))
    assert decision.action is ASK
    assert (
        decision.error
        == "rule r: limit: args.customer is neither a text nor a number, so calls cannot be counted by it"
    )


@pytest.mark.parametrize("amount", [-1, "abc", None, True, [1]])
def test_budget_without_an_amount_asks(amount: Any) -> None:
    for decision in (
        judge(policy(rule("r", "allow", budget=BUDGET)), amount=amount),
        judge(asking("deny", over={"budget": BUDGET}), amount=amount),
        judge(asking("deny", over={"budget": BUDGET})),
    ):
        assert decision.action is ASK
        assert str(decision.error).startswith("rule r: ")
        assert decision.due_charges == ()


@pytest.mark.parametrize(("before", "decides"), [(4, Action.ALLOW), (5, Action.DENY)])
def test_over_applies_once_calls_exceed_it(before: int, decides: Action) -> None:
    decision = judge(asking("deny", over={"limit": {"count": 5, **HOUR}}), before)
    assert decision.action is decides
    assert [one.most for one in decision.due_charges] == [5 if decides is Action.ALLOW else None]


@pytest.mark.parametrize(
    ("calls", "amount", "applies"), [(0, 1, False), (0, 101, True), (3, 1, True), (3, 101, True), (3, None, True)]
)
def test_over_applies_beyond_either(calls: int, amount: Any, applies: bool) -> None:
    rules = asking("deny", over={"limit": {"count": 3, **HOUR}, "budget": BUDGET})
    about = event(amount=amount)
    limit, budget = rules.list_wanted(about)
    ledger = Ledger(rules, {limit.counter: Reading(total=calls), budget.counter: Reading()})
    assert ledger.judge(about).action is (Action.DENY if applies else Action.ALLOW)


@pytest.mark.parametrize(("before", "applies"), [(0, True), (1, False)])
def test_unseen_applies_to_a_new_value(before: int, applies: bool) -> None:
    rules = asking(unseen={"value": "args.to", "within": 86_400})
    decision = judge(rules, before, to="anna")
    assert decision.action is (ASK if applies else Action.ALLOW)
    assert len(decision.due_charges) == 1


@pytest.mark.parametrize(
    ("samples", "amount", "decides"), [(20, 50, "allow"), (20, 50.01, "request_approval"), (19, 1, "request_approval")]
)
def test_above_compares_with_a_percentile(samples: int, amount: float, decides: str) -> None:
    decision = judge(asking(above={"of": "args.amount", "within": 86_400}), 50 * UNIT, samples, amount=amount)
    assert decision.action == decides
    assert [one.sample for one in decision.due_charges] == [True], "it learns from calls that a person approves"
    assert decision.error == (None if samples == 20 else "rule r: above: only 19 of 20 earlier amounts are known")


@pytest.mark.parametrize(("before", "applies"), [(1, False), (2, True)])
def test_repeats_applies_to_the_same_call_again(before: int, applies: bool) -> None:
    assert judge(asking(repeats={"within": 600, "more_than": 2}), before, a=1).action == (ASK if applies else "allow")


def test_all_keys_of_a_rule_must_hold() -> None:
    rules = asking(unseen={"value": "args.to", "within": 86_400}, over={"limit": {"count": 2, **HOUR}})
    assert judge(rules, 0, to="anna").action is Action.ALLOW, "it is new, but not over the limit"
    assert judge(rules, 2, to="anna").action is Action.ALLOW, "it is over the limit, but not new"
    assert judge(rules, 0).action is Action.ALLOW, "a missing value makes no difference below the limit"


def test_counters_differ_by_rule_and_by_what_they_count_by() -> None:
    def counter(rule_id: str = "r", count: int = 1, **call: Any) -> str:
        limit = {"count": count, **HOUR, "by": ["agent", "args.to", "context.team"]}
        rules = policy(rule(rule_id, "allow", limit=limit))
        (found,) = rules.list_wanted(event(**{"to": "anna", "context": {"team": 1}, **call}))
        return found.counter

    first = counter()
    assert counter(count=9, text="other", run_id="run_2", to=" ANNA ", context={"team": 1.0}) == first
    others = [counter("s"), counter(to="ben"), counter(agent="other"), counter(context={"team": True}), counter(to=1)]
    assert len({first, *others}) == 6


def test_calls_count_by_who_is_behind_the_run() -> None:
    def counters(**call: Any) -> list[str]:
        limits = [{"count": 1, **HOUR, "by": by} for by in ("key", "owner", "person")]
        rules = policy(*(rule(f"r{n}", over={"limit": limit}) for n, limit in enumerate(limits)))
        return [one.counter for one in rules.list_wanted(event(**call))]

    first = counters(key="bot", who=Who(owner="anna", person="p1"))
    second = counters(key="other", who=Who(owner="anna", person="p2"))
    assert [a == b for a, b in zip(first, second, strict=True)] == [False, True, False]
    assert counters() == [], "unknown, so a person is asked"


@pytest.mark.parametrize("by", ["subagent", "args.customer", "args.customer.id", "context.team"])
def test_call_that_cannot_be_counted_asks(by: str) -> None:
    decision = judge(policy(rule("r", "allow", limit={"count": 1, **HOUR, "by": [by]})), customer=None)
    assert (decision.action, decision.error) == (ASK, f"rule r: limit: {by} is missing")


def test_rule_whose_counter_was_not_read_asks() -> None:
    decision = policy(rule("r", "allow", limit={"count": 1, **HOUR})).judge(event())
    assert (decision.action, decision.error) == (ASK, "rule r: limit: what it has counted is not known here")


def test_only_counters_of_rules_that_cover_the_call_are_read() -> None:
    rules = policy(
        rule("tool", "allow", tool_name="other", limit={"count": 1, **HOUR}),
        rule("when", "allow", when="args.amount > 5", limit={"count": 1, **HOUR}),
        rule("off", "allow", enabled=False, limit={"count": 1, **HOUR}),
        rule("plain", "allow"),
    )
    assert list(rules.list_wanted(event(amount=1))) == []
    assert list(rules.list_wanted(event())) == [], "the condition cannot be evaluated, so a person is asked anyway"
    assert len(list(rules.list_wanted(event(amount=6)))) == 1
    assert not policy(rule("plain", "allow")).remembering


def test_limits_bind_up_to_the_rule_that_decides() -> None:
    over = {"limit": {"count": 5, **HOUR}}
    rules = policy(
        rule("first", over=over, priority=3),
        rule("lets", "allow", priority=2, limit={"count": 9, **HOUR}),
        rule("never", "allow", priority=1, limit={"count": 9, **HOUR}),
        rule("last", over=over, priority=0),
    )
    decision = judge(rules)
    assert [one.most for one in decision.charges] == [5, None], "a rule after the one that decides only counts"
    assert [one.most for one in decision.allowance] == [9], "what another rule would allow is not used up"
    assert [(one.rule_id, one.key) for one in decision.remembered] == [
        ("first", "over.limit"),
        ("lets", "limit"),
        ("never", "limit"),
        ("last", "over.limit"),
    ]


def test_calls_of_a_batch_count_for_those_after_them() -> None:
    rules = policy(rule("r", "allow", budget=BUDGET), default=Action.DENY)
    about = event(amount=40)
    ledger = Ledger(rules, {one.counter: Reading() for one in rules.list_wanted(about)})
    assert [ledger.judge(about).action for _ in range(3)] == ["allow", "allow", "deny"]


def test_approved_call_takes_nothing_of_what_a_rule_allows() -> None:
    rules = policy(rule("r", "allow", limit={"count": 1, **HOUR}), rule("o", over={"limit": {"count": 2, **HOUR}}))
    about = event()
    ledger = Ledger(rules, {one.counter: Reading() for one in rules.list_wanted(about)})
    assert len(ledger.judge_start(about).due_charges) == 1
    assert len(ledger.judge_start(about, by_person=False).due_charges) == 2


def test_call_does_not_count_against_itself_twice() -> None:
    rules = policy(rule("o", over={"limit": {"count": 1, **HOUR}}))
    about = event()
    ledger = Ledger(rules, {one.counter: Reading() for one in rules.list_wanted(about)})
    charged = ledger.judge(about).due_charges
    assert ledger.judge_start(about, charged).action is Action.ALLOW
    assert ledger.judge_start(about).action is Action.DENY, "another call does"


def test_shadow_rules_count_and_limit_nothing() -> None:
    rules = policy(
        rule("cap", mode="shadow", over={"limit": {"count": 1, **HOUR}}),
        rule("lets", "allow", mode="shadow", priority=200, limit={"count": 1, **HOUR}),
        default=ASK,
    )
    about = event()
    ledger = Ledger(rules, {one.counter: Reading() for one in rules.list_wanted(about)})
    first, second = ledger.judge_start(about), ledger.judge_start(about)
    assert [(one.action, [charge.most for charge in one.due_charges]) for one in (first, second)] == [
        (ASK, [None, None]),
        (ASK, [None]),
    ]
    assert [one.rule_id for one in first.shadow] == ["lets"]
    assert [one.rule_id for one in second.shadow] == ["cap"]


def test_tool_that_looks_alike_counts_once() -> None:
    cap: dict[str, Any] = {"over": {"limit": {"count": 1, **HOUR}}}
    rules = policy(rule("named", tool_name="send_email", **cap), rule("all", **cap))
    about = event("send_emai1")
    ledger = Ledger(rules, {one.counter: Reading() for one in rules.list_wanted(about)})
    first = ledger.judge(about)
    assert (first.action, len(first.due_charges)) == (Action.ALLOW, 2)
    assert ledger.judge(about).action is Action.DENY
