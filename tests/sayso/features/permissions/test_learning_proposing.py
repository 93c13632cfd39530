"""Proposals of grants: what is alike, what is counted, and that no proposal covers what nobody approved."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.readings import UNIT
from sayso.core.policy.rules import PolicyRule
from sayso.core.records.envelopes import ConstraintKind
from sayso.core.records.permissions import Denial, Grant, GrantState
from sayso.features.permissions.grants import digest_rule, names_call
from sayso.features.permissions.learning import LEARNED_FROM_MS, Answered, Lesson, propose_grants
from sayso.features.permissions.text import write_grant
from tests.sayso.rule_builders import event, rule

LEARN = {"after": 3, "probation": 2, "free": ["args.note"]}
GRANTS: dict[str, Any] = {"longest": "7d", "count": 50, "sum": {"of": "args.amount", "max": "5000"}, "learn": LEARN}
NOW_MS = 100 * DAY_MS
CALL: dict[str, Any] = {"customer": "C-77", "amount": 10, "note": "x"}


def make_rule(**grants: Any) -> PolicyRule:
    return rule("refunds", "request_approval", tool_name="refund", grants=GRANTS | grants)


RULE = make_rule()


def lesson(
    args: JsonObject,
    answered: Answered = Answered.APPROVED,
    at_ms: int = NOW_MS - 1,
    rules: PolicyRule = RULE,
    **facts: Any,
) -> Lesson:
    about = {"started_by": "desk", "definition": "d1", "subagent_name": ""} | facts
    return Lesson(
        event=event("refund", tool_args=args, **about),
        answered=answered,
        at_ms=at_ms,
        rule_id=rules.rule_id,
        rule_digest=digest_rule(rules),
        masked=args,
        denial=None,
        suspension_id="sus_1",
        item_id="i1",
    )


def propose(*lessons: Lesson, known: tuple[Grant, ...] = (), rules: PolicyRule = RULE) -> list[Grant]:
    return list(propose_grants(rules, lessons, known, NOW_MS))


def approve(*amounts: object, **facts: Any) -> list[Lesson]:
    return [lesson(CALL | {"amount": amount, "note": str(place)}, **facts) for place, amount in enumerate(amounts)]


def test_proposal_is_the_widest_that_people_approved() -> None:
    (made,) = propose(*approve(10, "19.90", 5.5))
    assert [(one.path, one.kind, one.value) for one in made.constraints] == [
        ("args.amount", ConstraintKind.AT_MOST, 19_900_000),
        ("args.customer", ConstraintKind.EQUAL, "C-77"),
        ("args.note", ConstraintKind.ANY, None),
    ]
    assert (made.count, made.sum and made.sum.max, made.people) == (50, 5000 * UNIT, 1)
    assert made.find_state(NOW_MS) is GrantState.PROBATION
    assert write_grant(made) == (
        'refund by support, requested by desk, with amount at most 19.90, customer "C-77", any note and no other '
        "arguments, up to 50 times and up to 5,000 amount in sum, for 7 d once in force"
    )


@pytest.mark.parametrize(
    ("lessons", "why"),
    [
        (approve(10, 20), "too few"),
        ([*approve(10, 20), lesson(CALL | {"customer": "C-78"})], "another value"),
        ([*approve(10, 20), lesson(CALL | {"express": True})], "another argument"),
        ([*approve(10, 20), lesson({"customer": "C-77", "amount": 10})], "a free argument is missing"),
        ([*approve(10, 20), *approve(30, agent="other")], "another agent"),
        ([*approve(10, 20), *approve(30, started_by="other")], "another owner"),
        ([*approve(10, 20), *approve(30, definition="d2")], "another tool"),
        ([*approve(10, 20), *approve(30, at_ms=NOW_MS - LEARNED_FROM_MS)], "too long ago"),
        ([*approve(10, 20), *approve(30, rules=make_rule(count=51))], "under another rule"),
        ([*approve(10, 20, 30), lesson(CALL, Answered.DENIED)], "one was denied"),
        ([*approve(10, 20, 30), lesson(CALL, Answered.EDITED)], "one was edited"),
        (approve("a lot", "more", "most"), "no amounts"),
        ([lesson({**CALL, "a.b": 1})] * 3, "a name that is no word"),
        ([lesson({"customer": "C-77", "note": ""})] * 3, "nothing to sum"),
        ([lesson(CALL)._replace(masked=CALL | {"customer": "***"})] * 3, "a secret"),
    ],
)
def test_nothing_is_proposed_without_like_approvals(lessons: list[Lesson], why: str) -> None:
    assert propose(*lessons) == [], why


def test_secret_argument_may_be_free() -> None:
    (made,) = propose(*[lesson(CALL)._replace(masked=CALL | {"note": "***"})] * 3)
    assert "any note" in write_grant(made)


def test_denial_of_another_call_keeps_no_proposal_back() -> None:
    others = [lesson(CALL | {"amount": 31}, Answered.DENIED), lesson(CALL | {"customer": "C-78"}, Answered.DENIED)]
    assert len(propose(*approve(10, 20, 30), *others)) == 1


def test_one_grant_at_a_time_and_then_decisions_since() -> None:
    (made,) = propose(*approve(10, 20, 30))
    later = approve(10, 20, 30)
    assert propose(*later, known=(made,)) == []
    in_force = made.model_copy(update={"granters": ("anna",), "until_ms": NOW_MS + 1})
    assert propose(*later, known=(in_force,)) == []
    for end in (
        {"revoked_at_ms": NOW_MS - 5},
        {"until_ms": NOW_MS - 5},
        {"denial": Denial(by="anna", at_ms=NOW_MS - 5, suspension_id="s", item_id="i1")},
    ):
        over = made.model_copy(update=end)
        assert propose(*approve(10, 20, 30, at_ms=NOW_MS - 5), known=(over,)) == []
        (again,) = propose(*later, known=(over,))
        assert again.id != made.id


def test_nothing_is_proposed_where_the_rule_learns_nothing() -> None:
    assert propose(*approve(10, 20, 30), rules=make_rule(learn=None)) == []


def test_as_many_people_are_needed_as_for_an_approval() -> None:
    asking = rule("refunds", "request_approval", tool_name="refund", grants=GRANTS, terms={"quorum": {"approve": 3}})
    (made,) = propose(*approve(10, 20, 30, rules=asking), rules=asking)
    assert made.people == 3


ARGS = st.fixed_dictionaries(
    {"customer": st.sampled_from(["A", "B"]), "amount": st.sampled_from([0, 5, 7.5, "9", -1, True, None])},
    optional={"note": st.sampled_from(["x", "y", None]), "deep": st.sampled_from([{}, {"a": 1}, {"a": None}, [1]])},
)
LESSONS = st.lists(st.tuples(ARGS, st.sampled_from([*[Answered.APPROVED] * 8, *Answered])), max_size=60)


@given(decided=LESSONS, call=ARGS)
def test_proposals_cover_what_was_approved_and_nothing_else(
    decided: list[tuple[dict[str, Any], Answered]], call: dict[str, Any]
) -> None:
    made = propose(*(lesson(args, answered) for args, answered in decided))
    approved = [args for args, answered in decided if answered is Answered.APPROVED]
    refused = [args for args, answered in decided if answered is not Answered.APPROVED]
    expected = {
        key: max(float(one["amount"]) for one in approved if key_of(one) == key)
        for key, count in Counter(map(key_of, approved)).items()
        if key and count >= 3
    }
    sure = {
        key: most
        for key, most in expected.items()
        if not any(key_of(one) == key and float(one["amount"]) <= most for one in refused)
    }
    assert len(made) == len(sure)
    covered = [grant for grant in made if names_call(grant, "refunds", lesson(call).event)]
    key = key_of(call)
    assert len(covered) == int(key in sure and float(call["amount"]) <= sure[key])


def key_of(args: dict[str, Any]) -> str:
    """Return what makes calls alike, by brute force; empty for a call without an amount."""
    amount = args["amount"]
    if amount is None or isinstance(amount, bool) or float(amount) < 0:
        return ""
    note = "" if args.get("note") is None else "any"
    kept = {**args, "amount": 0, "note": note} if "note" in args else {**args, "amount": 0}
    return canonical_json(kept).decode()
