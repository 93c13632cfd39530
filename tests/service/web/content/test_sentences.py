from typing import Any

import pytest

from sayso.records.decisions import COVERED, TIMEOUT, Actor, ActorKind, Decision, Outcome, Verdict
from sayso.records.freezes import Freeze
from sayso.records.items import Binding, Doubt, Item, freeze_item
from sayso.records.suspensions import RunRef, Status, SuspensionRecord
from sayso.transitions.timing import keep_time
from service.web.content.sentences import (
    describe_denial,
    describe_fallback,
    describe_hold,
    describe_outcome,
    describe_quorum,
    describe_reviewers,
    describe_word,
    find_hindrance,
    join_words,
    name_question,
)
from tests.service.web.stories import ask_value, make_ask

NOW = 1_000_000
DOUBT = Doubt(begun_at_ms=NOW, holder="host:1", attempt=1, idempotency_key="sus_1:i1")
BEN = Actor(id="ben", kind=ActorKind.HUMAN)


def item_with(**terms: Any) -> Item:
    binding = Binding(tenant="default", run_id="run_1", attempt=1, suspension_id="sus_1")
    return freeze_item(make_ask(terms=terms), "i1", binding, NOW)


def record_with(item: Item, **fields: Any) -> SuspensionRecord:
    run = RunRef(id="run_1", agent="support", owner="demo", thread_id="t")
    given = {"id": "sus_1", "tenant": "default", "status": Status.PENDING, "created_at_ms": NOW, "updated_at_ms": NOW}
    return SuspensionRecord(**{**given, "run": run, "items": (item,), **fields})


def outcome(verdict: Verdict, by: Actor = BEN, **fields: Any) -> Outcome:
    return Outcome(verdict=verdict, by=by, at_ms=NOW, start_by_ms=NOW, digest="d", **fields)


def word(action: str, **fields: Any) -> Decision:
    given = {"id": "d1", "suspension_id": "sus_1", "suspension_version": 1, "item_id": "i1", "args_digest": "d"}
    return Decision.model_validate({**given, "action": action, "by": BEN, "at_ms": NOW, **fields})


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, "it is denied"),
        (
            {"fallback": {"action": "approve"}, "unattended_approval": True},
            "it is approved only if somebody who may decide it has seen it",
        ),
        ({"fallback": {"action": "value", "value": "HH-1"}}, "the value “HH-1” is used"),
        ({"fallback": {"action": "value", "value": 7}}, "the value “7” is used"),
        ({"fallback": {"action": "fail"}}, "the whole run fails"),
        (
            {"fallback": {"action": "escalate"}, "escalate": [{"after_s": 600, "reviewers": ["cleo", "dan"]}]},
            "cleo and dan can decide too, for another 5 min",
        ),
    ],
)
def test_what_happens_at_the_deadline_is_said_plainly(terms: dict[str, Any], words: str) -> None:
    item = item_with(**terms)
    assert describe_fallback(record_with(item), item) == words


def test_who_is_called_in_next_is_named_and_after_the_last_it_is_denied() -> None:
    steps = [{"after_s": 600, "reviewers": ["cleo"]}, {"after_s": 900, "reviewers": ["dan"]}]
    item = item_with(fallback={"action": "escalate"}, escalate=steps, timeout_s=900, reviewers=["anna"])
    record, told = record_with(item), []
    for at_ms in (NOW, NOW + 600_000, NOW + 900_000):
        record = keep_time(record, at_ms).record
        told.append(describe_fallback(record, record.items[0]))
    assert told == ["cleo can decide too, for another 15 min", "dan can decide too, for another 15 min", "it is denied"]
    assert record.items[0].terms.deadline_at_ms == NOW + 2 * 900_000


def test_who_may_decide_is_named() -> None:
    anybody, few = item_with(), item_with(reviewers=["anna", "ben"], no_self_approval=False)
    assert describe_reviewers(record_with(anybody), anybody) == "Any reviewer, except demo, who asked"
    assert describe_reviewers(record_with(few), few) == "anna or ben"


def test_a_quorum_is_counted_only_where_one_is_not_enough() -> None:
    assert describe_quorum(item_with()) == ""
    item = item_with(quorum={"approve": 2, "deny": 1}).model_copy(update={"decisions": (word("approve"),)})
    assert describe_quorum(item) == "1 of 2 approvals, 0 of 1 denials"
    apart = item.model_copy(update={"decisions": (word("approve"), word("approve", args={"amount": 1}), word("deny"))})
    assert describe_quorum(apart) == "1 of 2 approvals of the same arguments, 1 of 1 denials"


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (outcome(Verdict.APPROVED), "ben approved this"),
        (outcome(Verdict.APPROVED, args={"a": 1}), "ben approved this with other arguments"),
        (outcome(Verdict.DENIED), "ben denied this"),
        (outcome(Verdict.ANSWERED, value=7), "ben gave a value"),
        (outcome(Verdict.DENIED, TIMEOUT), "Nobody answered in time: denied by its fallback"),
        (outcome(Verdict.FAILED, TIMEOUT), "Nobody answered in time: failed by its fallback"),
    ],
)
def test_an_outcome_names_who_and_what(ended: Outcome, words: str) -> None:
    assert describe_outcome(item_with().model_copy(update={"outcome": ended})) == words


def test_what_machines_did_is_said_too() -> None:
    def told(by: Actor, verdict: Verdict, **fields: Any) -> str:
        return describe_outcome(
            item_with().model_copy(update={"outcome": outcome(verdict, by, **fields), "doubt": DOUBT})
        )

    rules = Actor(id="policy", kind=ActorKind.POLICY)
    worker = Actor(id="host:1", kind=ActorKind.WORKER)
    assert told(rules, Verdict.DENIED) == "The rules denied this"
    assert told(COVERED, Verdict.DENIED) == "Closed, for another answer was enough"
    assert told(BEN, Verdict.ANSWERED, value={"choice": "run_again"}) == "ben chose to run it again"
    assert told(BEN, Verdict.ANSWERED, value={"choice": "skip", "result": "7"}) == "ben chose to skip it"
    reported = told(worker, Verdict.ANSWERED, value={"choice": "reported"})
    assert reported == "The worker that had begun it reported its result after all"
    assert describe_outcome(item_with()) == ""


def test_one_word_of_several_is_told() -> None:
    assert describe_word(word("approve", args={"a": 1})) == "ben approved with other arguments"
    assert describe_word(word("deny", by=TIMEOUT)) == "the deadline denied"


def test_a_question_says_what_is_needed() -> None:
    binding = Binding(tenant="default", run_id="run_1", attempt=1, suspension_id="sus_1")
    assert name_question(item_with()) == "needs approval"
    assert name_question(freeze_item(ask_value(), "i1", binding, NOW)) == "needs a value"


def test_who_cannot_decide_is_told_why() -> None:
    item, few = item_with(), item_with(reviewers=["anna"])
    given = item.model_copy(update={"decisions": (word("approve"),)})
    assert find_hindrance(record_with(item), item, "anna") is None
    assert "You asked for this" in (find_hindrance(record_with(item), item, "demo") or "")
    assert find_hindrance(record_with(few), few, "ben") == "This is for anna to decide."
    assert "given your word" in (find_hindrance(record_with(given), given, "ben") or "")


def test_what_a_denial_does_to_the_run_is_said() -> None:
    told = {describe_denial(record_with(item_with(), on_deny=policy)) for policy in ("continue", "degrade", "fail")}
    assert len(told) == 3


@pytest.mark.parametrize(
    ("words", "joined"), [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_words_are_joined_as_a_sentence_does(words: tuple[str, ...], joined: str) -> None:
    assert join_words(words) == joined


STOP = {"id": "frz_1", "by": "root", "at_ms": NOW + 60_000}


@pytest.mark.parametrize(
    ("freeze", "after_s", "words"),
    [
        ({"scope": "all"}, 60, "4 min left, on hold"),
        ({"scope": "all"}, 7_200, "4 min left, on hold"),
        ({"scope": "tool:other"}, 60, ""),
        ({"scope": "all", "unfrozen_by": "root", "unfrozen_at_ms": NOW + 70_000}, 80, ""),
        ({"scope": "time", "jumped_to_ms": NOW + 7_200_000}, 7_200, "on hold"),
        ({"scope": "time", "jumped_to_ms": NOW + 90_000}, 90, "on hold"),
    ],
)
def test_time_that_stands_still_is_told_with_what_is_left_of_it(
    freeze: dict[str, Any], after_s: int, words: str
) -> None:
    item = item_with(timeout_s=300)
    freezes = [Freeze.model_validate({**STOP, **freeze})]
    assert describe_hold(record_with(item), item, freezes, NOW + after_s * 1000) == words
