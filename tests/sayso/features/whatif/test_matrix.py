"""The matrix of a replay equals a brute-force count, and uses the engine that judges live calls."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action
from sayso.errors import InvalidInput
from sayso.features.whatif.matrix import (
    MOST_EXAMPLES,
    MOST_LISTED,
    Amount,
    AmountFinder,
    RuleChange,
    Tally,
    find_past,
    tally,
)
from sayso.features.whatif.reevaluation import NOT_KEPT, RecordedCall, effect_of, rejudge
from sayso.wire.rulebook import Effect, Past
from tests.sayso.rule_builders import event, policy, rule

LIVE = policy(
    rule("large", "request_approval", priority=300, tool_name="pay", when="args.amount > 100"),
    rule("small", "allow", priority=200, tool_name="pay"),
    default=Action.DENY,
)
WRONG = policy(
    rule("large", "request_approval", priority=300, tool_name="pay", when="args.amount > 10000"),
    rule("small", "allow", priority=200, tool_name="pay"),
    default=Action.DENY,
)
"""The rules of `LIVE` with two zeros too many."""

TOOLS = ("pay", "read", "send")
CONDITIONS = (None, "args.amount > 100", "args.amount < 50 && agent == 'bot'", 'args.currency == "EUR"')


class BrokenEngine(Policy):
    """An engine that allows everything."""

    def judge(self, event: PolicyEvent) -> PolicyDecision:
        return super().judge(event).model_copy(update={"action": Action.ALLOW})


def recorded(number: int = 0, *, tool: str = "pay", action: str = "request_approval", **parts: Any) -> RecordedCall:
    args = {name: parts.pop(name) for name in tuple(parts) if name in ("amount", "currency")}
    call = event(tool, **args).model_copy(update={"run_id": f"run_{number}"})
    return RecordedCall(event=call, action=Action(action), at_ms=number, **parts)


def denied(number: int = 0, **parts: Any) -> RecordedCall:
    return recorded(number, verdict="denied", by_person=True, rule_id="large", **parts)


def count(rules: Policy, *calls: RecordedCall, base: Policy | None = None, path: str | None = None) -> Tally:
    before = list(rejudge(base, calls, {})) if base is not None else None
    return tally(calls, rejudge(rules, calls, {}), AmountFinder([rules, LIVE], path), before)


@st.composite
def draw_rules(draw: st.DrawFn) -> Policy:
    actions = st.sampled_from(["allow", "deny", "request_approval"])
    rules = [
        rule(
            f"r{number}",
            draw(actions),
            priority=draw(st.sampled_from([100, 200])),
            **({"tool_name": tool} if (tool := draw(st.sampled_from([None, *TOOLS]))) else {}),
            when=draw(st.sampled_from(CONDITIONS)),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    return policy(*rules, default=Action(draw(actions)))


@st.composite
def draw_call(draw: st.DrawFn) -> RecordedCall:
    args = {}
    if draw(st.booleans()):
        args["amount"] = draw(st.sampled_from([5, 99.5, 250, "500", True]))
    if draw(st.booleans()):
        args["currency"] = draw(st.sampled_from(["EUR", "usd", "gold"]))
    asked = draw(st.booleans())
    people = draw(st.lists(st.one_of(st.none(), st.integers(0, 90_000)), max_size=2)) if asked else []
    return recorded(
        draw(st.integers(0, 1000)),
        tool=draw(st.sampled_from(TOOLS)),
        action="request_approval" if asked else draw(st.sampled_from(["allow", "deny"])),
        verdict=draw(st.sampled_from(["approved", "denied", "answered", "failed", ""])) if asked else "",
        by_person=bool(people),
        look_times_ms=tuple(people),
        missing=draw(st.sampled_from(["", "", "", NOT_KEPT])),
        rule_id=draw(st.sampled_from(["r0", "gone", None])),
        **args,
    )


def count_by_force(rules: Policy, calls: list[RecordedCall]) -> tuple[Counter[Any], dict[Any, Decimal], Counter[str]]:
    """Return the counts and sums by past and effect, one call after the other, without any code of the matrix."""
    counts: Counter[Any] = Counter()
    sums: dict[Any, Decimal] = {}
    missing: Counter[str] = Counter()
    for call in calls:
        if call.missing:
            missing[call.missing] += 1
            continue
        if call.action is Action.REQUEST_APPROVAL:
            by_verdict = "approved" if call.verdict in ("approved", "answered") else "denied"
            past = by_verdict if call.by_person else "undecided"
        else:
            past = "allowed" if call.action is Action.ALLOW else "refused"
        action = rules.judge(call.event).action
        now = {Action.ALLOW: "allowed", Action.DENY: "denied"}.get(action, "asked")
        counts[past, now] += 1
        amount = call.event.tool_args.get("amount")
        if isinstance(amount, int | float) and not isinstance(amount, bool):
            name = str(call.event.tool_args.get("currency", "")).upper()
            key = (past, now, name if name in ("EUR", "USD") else "")
            sums[key] = sums.get(key, Decimal()) + Decimal(str(amount))
    return counts, sums, missing


@settings(deadline=None, max_examples=50)
@given(draw_rules(), st.lists(draw_call(), max_size=30), st.integers(1, 30))
def test_matrix_equals_a_count_by_force(rules: Policy, calls: list[RecordedCall], page: int) -> None:
    found = Tally()
    for start in range(0, len(calls), page):
        found.add(count(rules, *calls[start : start + page], path="args.amount"))
    counts, sums, missing = count_by_force(rules, calls)
    assert {(one.past.value, one.now.value): one.count for one in found.list_cells()} == counts
    listed = {(one.past.value, one.now.value, name): x for one in found.list_cells() for name, x in one.sums.items()}
    assert listed == sums
    assert found.missing == missing
    assert found.count == len(calls)


@settings(deadline=None, max_examples=50)
@given(draw_rules(), st.lists(draw_call(), max_size=30), st.integers(1, 30))
def test_tallies_of_parts_add_up_to_the_tally_of_the_whole(rules: Policy, calls: list[RecordedCall], page: int) -> None:
    parts = Tally()
    for start in range(0, len(calls), page):
        parts.add(Tally.model_validate_json(count(rules, *calls[start : start + page]).model_dump_json()))
    whole = count(rules, *calls)
    assert parts.list_cells() == whole.list_cells()
    assert (parts.missing, parts.look_times, parts.rule_changes) == (
        whole.missing,
        whole.look_times,
        whole.rule_changes,
    )


def test_planted_wrong_rule_is_found_with_its_calls() -> None:
    calls = [recorded(1, action="allow", amount=50), denied(2, amount=900), denied(3, amount=20_000)]
    (right,) = count(LIVE, calls[0]).list_cells()
    assert not right.changed
    found = count(WRONG, *calls)
    (wrong,) = [one for one in found.list_cells() if one.changed]
    assert (wrong.past, wrong.now, wrong.count, wrong.sums) == (Past.DENIED, Effect.ALLOWED, 1, {"": Decimal(900)})
    (listed,) = wrong.listed
    assert (listed.run_id, listed.args, listed.before, listed.now) == ("run_2", {"amount": 900}, "large", "small")
    ((change, number),) = found.list_rule_changes()
    assert number == 1
    assert change == RuleChange(before="large", after="small", was=Effect.ASKED, now=Effect.ALLOWED)


def test_broken_engine_breaks_the_replay() -> None:
    """The replay has no evaluation of its own: what breaks live judgements breaks it too."""
    calls = [denied(number, amount=900) for number in range(3)]
    assert count(LIVE, *calls).changed == 0
    broken = BrokenEngine(rules=LIVE.rules, default=LIVE.default)
    assert count(broken, *calls).changed == 3
    live = Ledger(LIVE).judge(calls[0].event), Ledger(broken).judge(calls[0].event)
    assert [one.action for one in live] == [Action.REQUEST_APPROVAL, Action.ALLOW]


def test_base_takes_the_place_of_what_was_done() -> None:
    calls = [denied(1, amount=900), denied(2, amount=20_000), recorded(3, action="allow", amount=50)]
    found = count(WRONG, *calls, base=LIVE)
    assert [(one.past, one.was, one.now, one.count) for one in found.list_cells()] == [
        (Past.ALLOWED, Effect.ALLOWED, Effect.ALLOWED, 1),
        (Past.DENIED, Effect.ASKED, Effect.ALLOWED, 1),
        (Past.DENIED, Effect.ASKED, Effect.ASKED, 1),
    ]
    assert count(LIVE, *calls, base=LIVE).changed == 0


def test_listed_calls_are_the_newest_up_to_a_limit() -> None:
    found = count(WRONG, *(denied(number, amount=900) for number in range(2 * MOST_LISTED + 5)))
    (cell,) = found.list_cells()
    assert cell.count == 2 * MOST_LISTED + 5
    assert [one.at_ms for one in cell.listed] == list(range(2 * MOST_LISTED + 4, MOST_LISTED + 4, -1))
    approved = [recorded(number, verdict="approved", by_person=True, amount=900) for number in range(200)]
    (cell,) = count(WRONG, *approved).list_cells()
    assert len(cell.listed) == MOST_EXAMPLES


def test_listed_calls_mask_secrets_and_leave_out_long_arguments() -> None:
    secret = denied(1, amount=900, secrets=("currency",), currency="4711-4711")
    long = denied(2, amount=900, currency="x" * 1000)
    (cell,) = count(WRONG, secret, long).list_cells()
    assert [one.args for one in cell.listed] == [{}, {"amount": 900, "currency": "[secret]"}]


def test_looks_are_measured_or_count_as_the_median() -> None:
    looks = [(4_000,), (10_000,), (60_000, None)]
    calls = [denied(number, amount=900, look_times_ms=look) for number, look in enumerate(looks)]
    strict = policy(rule("two", "request_approval", terms={"quorum": {"approve": 2}}))
    found = count(WRONG, *calls)
    assert found.find_typical_look_ms() == 10_000
    assert (found.estimate_saved_ms(), found.estimate_added_ms()) == (84_000, 0)
    found.add(count(strict, recorded(9, action="allow", amount=1)))
    assert found.estimate_added_ms() == 20_000, "two people would have to approve it"
    assert count(WRONG, denied(amount=900, look_times_ms=(None,))).find_typical_look_ms() is None


def test_decision_of_a_fallback_is_not_one_of_people() -> None:
    assert find_past(recorded(verdict="denied")) is Past.UNDECIDED
    assert find_past(recorded(verdict="answered", by_person=True)) is Past.APPROVED
    assert effect_of(Action.REQUEST_USER_INPUT) is Effect.ASKED


@pytest.mark.parametrize(
    ("args", "path", "expected"),
    [
        ({"amount": 5, "currency": "eur"}, None, Amount(Decimal(5), "EUR")),
        ({"amount": 0.1, "payout_currency": "CHF"}, None, Amount(Decimal("0.1"), "CHF")),
        ({"amount": 5, "currency": "EUR", "ccy": "USD"}, None, Amount(Decimal(5))),
        ({"amount": True}, None, None),
        ({"amount": "5"}, None, None),
        ({"amount": float("inf")}, None, None),
        ({"order": {"total": 7, "currency": "EUR"}}, "args.order.total", Amount(Decimal(7), "EUR")),
        ({"order": 7}, "args.order.total", None),
        ({}, "args.amount", None),
    ],
)
def test_amount_is_read_with_its_currency(args: dict[str, Any], path: str | None, expected: Amount | None) -> None:
    call = event("pay").model_copy(update={"tool_args": args})
    assert AmountFinder([LIVE], path).find(call) == expected


def test_amount_is_what_a_rule_about_the_tool_compares() -> None:
    rules = policy(
        rule("by-size", priority=200, tool_name="scale", when="args.nodes > 3"),
        rule("by-sum", tool_name_pattern="pay*", when='double(args.sum) > 1.5 && args.note != "x"'),
    )
    finder = AmountFinder([rules])
    assert finder.find(event("payout", sum=7, nodes=9)) == Amount(Decimal(7))
    assert finder.find(event("read", sum=7, nodes=9)) is None


def test_amount_at_an_unusable_path_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"args\.amount"):
        AmountFinder((), "amount; drop")
