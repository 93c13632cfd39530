"""Sentences about an item before its outcome."""

from typing import Any

import pytest

from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Answer, ItemKind
from sayso.core.sentences import join_words, name_reviewers
from sayso.core.sentences.deadlines import describe_fallback, describe_hold
from sayso.core.sentences.items import (
    count_quorum,
    describe_deadlock,
    describe_denial,
    describe_ineligibility,
    describe_quorum,
    describe_resemblance,
    describe_reviewers,
    describe_wanted,
)
from sayso.core.transitions.deadlines import keep_time
from tests.sayso.core.sentences.samples import NOW, make_decision, make_item, make_record
from tests.sayso.samples import person


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({}, "it is denied"),
        (
            {"fallback": {"action": "approve"}, "unattended_approval": True},
            "it runs by itself only if a reviewer has opened it or received its card",
        ),
        ({"fallback": {"action": "value", "value": "HH-1"}}, "the value “HH-1” is used"),
        ({"fallback": {"action": "value", "value": 7}}, "the value “7” is used"),
        ({"fallback": {"action": "fail"}}, "the run fails"),
        (
            {"fallback": {"action": "escalate"}, "escalate": [{"after_s": 600, "reviewers": ["cleo", "dan"]}]},
            "cleo and dan are asked too, for another 5 min",
        ),
    ],
)
def test_describe_fallback_names_the_effect_of_the_deadline(terms: dict[str, Any], sentence: str) -> None:
    item = make_item(**terms)
    assert describe_fallback(make_record(item), item) == sentence


def test_describe_fallback_after_each_escalation() -> None:
    steps = [{"after_s": 600, "reviewers": ["cleo"]}, {"after_s": 900, "reviewers": ["dan"]}]
    item = make_item(fallback={"action": "escalate"}, escalate=steps, timeout_s=900, reviewers=["anna"])
    record, sentences = make_record(item), []
    for at_ms in (NOW, NOW + 600_000, NOW + 900_000):
        record = keep_time(record, at_ms).record
        sentences.append(describe_fallback(record, record.items[0]))
    assert sentences == [
        "dan is asked too, for another 15 min",
        "dan is asked too, for another 15 min",
        "it is denied",
    ]
    assert record.items[0].terms.deadline_at_ms == NOW + 2 * 900_000


def test_describe_reviewers_excludes_the_requester() -> None:
    anybody, few = make_item(), make_item(reviewers=["anna", "ben"], no_self_approval=False)
    assert describe_reviewers(make_record(anybody), anybody) == "Any reviewer, except demo, who requested it"
    assert describe_reviewers(make_record(few), few) == "anna or ben"


def test_describe_wanted_names_the_argument_that_needs_a_value() -> None:
    fields: dict[str, Any] = {"kind": ItemKind.INPUT, "allowed": (Answer.VALUE,)}
    assert describe_wanted(make_item({**fields, "target_arg": "code"})) == "wants: code"
    assert describe_wanted(make_item(fields)) == "wants: a value"
    assert describe_wanted(make_item()) == ""


def test_count_quorum_is_brief() -> None:
    assert count_quorum(make_item()) == ""
    item = make_item(quorum={"approve": 2}).model_copy(update={"decisions": (make_decision("approve"),)})
    assert count_quorum(item) == "1 of 2"


def test_describe_quorum_counts_approvals_of_the_same_arguments() -> None:
    assert describe_quorum(make_item()) == ""
    item = make_item(quorum={"approve": 2, "deny": 1}).model_copy(update={"decisions": (make_decision("approve"),)})
    assert describe_quorum(item) == "1 of 2 have approved; 1 denial is enough"
    decisions = (make_decision("approve"), make_decision("approve", args={"amount": 1}), make_decision("deny"))
    assert (
        describe_quorum(item.model_copy(update={"decisions": decisions}))
        == "1 of 2 have approved the same arguments; 1 denial is enough"
    )


def test_describe_ineligibility_says_why_a_reviewer_cannot_decide() -> None:
    item, few = make_item(), make_item(reviewers=["anna"])
    decided = make_item(quorum={"approve": 2}).model_copy(update={"decisions": (make_decision("approve"),)})
    assert describe_ineligibility(make_record(item), item, person("anna")) == ""
    assert "You requested this call" in describe_ineligibility(make_record(item), item, person("demo"))
    assert describe_ineligibility(make_record(few), few, person("ben")) == "Only anna can decide this."
    assert describe_ineligibility(make_record(decided), decided, person("ben")) == "You approved. Waiting for 1 more."


def test_sentences_name_groups_in_words() -> None:
    item = make_item(
        reviewers=["anna", "group:payments"],
        fallback={"action": "escalate"},
        escalate=[{"after_s": 600, "reviewers": ["group:ops"]}],
    )
    record = make_record(item)
    assert describe_reviewers(record, item).startswith("anna or the group payments, except demo")
    assert describe_fallback(record, item).startswith("the group ops is asked too")
    assert (
        describe_ineligibility(record, item, person("ben", "ops")) == "Only anna or the group payments can decide this."
    )
    assert describe_ineligibility(record, item, person("ben", "ops", "payments")) == ""
    assert name_reviewers(["group:ops"]) == "the group ops"


def test_describe_deadlock_is_unknown_with_a_group() -> None:
    item = make_item(reviewers=["group:payments"], quorum={"approve": 2})
    split = item.model_copy(update={"decisions": (make_decision("approve"),)})
    assert describe_deadlock(make_record(split), split) == ""


def test_describe_deadlock_when_too_few_reviewers_are_left() -> None:
    item = make_item(reviewers=["ben", "demo"], quorum={"approve": 2, "deny": 2})
    split = item.model_copy(update={"decisions": (make_decision("approve"),)})
    assert describe_deadlock(make_record(item), make_item(reviewers=["ben"])) == ""
    sentence = "Too few reviewers are left to reach the quorum. At the deadline it is denied."
    assert describe_deadlock(make_record(split), split) == sentence
    assert describe_ineligibility(make_record(split), split, person("ben")) == f"You approved. {sentence}"


def test_describe_denial_depends_on_the_run() -> None:
    sentences = {
        describe_denial(make_record(item := make_item(), on_deny=on_deny), item)
        for on_deny in ("continue", "degrade", "fail")
    }
    assert len(sentences) == 3


def test_describe_resemblance() -> None:
    assert describe_resemblance(()) == ""
    assert (
        describe_resemblance(["pick"])
        == "This tool name resembles pick in the rules but is not the same. Those rules apply too."
    )


@pytest.mark.parametrize(
    ("words", "joined"), [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_join_words(words: tuple[str, ...], joined: str) -> None:
    assert join_words(words) == joined


FREEZE = {"id": "frz_1", "by": "root", "at_ms": NOW + 60_000}


@pytest.mark.parametrize(
    ("freeze", "after_s", "sentence"),
    [
        ({"scope": "all"}, 60, "4 min left, on hold"),
        ({"scope": "all"}, 7_200, "4 min left, on hold"),
        ({"scope": "tool:other"}, 60, ""),
        ({"scope": "all", "unfrozen_by": "root", "unfrozen_at_ms": NOW + 70_000}, 80, ""),
        ({"scope": "time", "jumped_to_ms": NOW + 7_200_000}, 7_200, "on hold"),
        ({"scope": "time", "jumped_to_ms": NOW + 90_000}, 90, "on hold"),
    ],
)
def test_describe_hold_names_the_time_left(freeze: dict[str, Any], after_s: int, sentence: str) -> None:
    item = make_item(timeout_s=300)
    freezes = [Freeze.model_validate({**FREEZE, **freeze})]
    assert describe_hold(make_record(item), item, freezes, NOW + after_s * 1000) == sentence
