"""Sentences about decisions, outcomes and states."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sayso.core.records.decisions import COVERED, TIMEOUT, Actor, ActorKind, Outcome, Shown, Verdict
from sayso.core.records.items import Doubt, ItemTool
from sayso.core.records.terms import Fallback
from sayso.core.records.undoing import Reversal
from sayso.core.sentences.deadlines import describe_clock, write_sentence
from sayso.core.sentences.outcomes import (
    describe_decision,
    describe_outcome,
    describe_outcome_when,
    describe_shown,
    describe_state,
)
from sayso.wire.items import ItemView, OutcomeView
from sayso.wire.terms import TermsView
from tests.sayso.core.sentences.samples import BEN, NOW, make_decision, make_item, make_outcome
from tests.sayso.views import view

CALL = Reversal(run_id="run_0", suspension_id="sus_0", tool="pay", call_id="c0", index=0, at_ms=NOW)
DOUBT = Doubt(begun_at_ms=NOW, holder="host:1", attempt=1, idempotency_key="sus_1:i1")


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (make_outcome(Verdict.APPROVED), "ben approved this"),
        (make_outcome(Verdict.APPROVED, args={"a": 1}), "ben approved this with 4 changes"),
        (make_outcome(Verdict.DENIED), "ben denied this"),
        (make_outcome(Verdict.ANSWERED, value=7), "ben gave a value"),
        (make_outcome(Verdict.DENIED, TIMEOUT), "Denied: nobody answered in time"),
        (make_outcome(Verdict.FAILED, TIMEOUT), "Failed: nobody answered in time"),
    ],
)
def test_describe_outcome_names_who_decided(outcome: Outcome, sentence: str) -> None:
    assert describe_outcome(make_item().model_copy(update={"outcome": outcome})) == sentence


def test_describe_outcome_when_has_the_time_of_a_deadline() -> None:
    def write(verdict: Verdict, by: Actor) -> str:
        item = make_item().model_copy(update={"outcome": make_outcome(verdict, by)})
        return write_sentence(describe_outcome_when(item), describe_clock)

    assert write(Verdict.DENIED, TIMEOUT) == "Denied at 1970-01-01 00:16:40 UTC: nobody answered in time"
    assert write(Verdict.DENIED, BEN) == "ben denied this"
    assert describe_outcome_when(make_item()) == ()


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (make_outcome(Verdict.APPROVED), "ben chose to undo it"),
        (make_outcome(Verdict.DENIED), "ben chose to keep it"),
        (make_outcome(Verdict.DENIED, TIMEOUT), "Stays as it is from 1970-01-01 00:16:40 UTC on"),
    ],
)
def test_describe_outcome_of_an_offer_says_what_stays(outcome: Outcome, sentence: str) -> None:
    offer = make_item({"reverses": CALL}).model_copy(update={"outcome": outcome})
    assert write_sentence(describe_outcome_when(offer), describe_clock) == sentence


def test_describe_outcome_of_an_offer_that_nobody_took() -> None:
    late = {"outcome": make_outcome(Verdict.DENIED, TIMEOUT)}
    assert describe_outcome(make_item({"reverses": CALL}).model_copy(update=late)) == (
        "Stays as it is: nobody undid it in time"
    )
    doubtful = make_item({"reverses": CALL, "doubt": DOUBT}).model_copy(update=late)
    assert describe_outcome(doubtful) == "Denied: nobody answered in time"


def test_describe_outcome_decided_by_a_part_of_sayso() -> None:
    def describe(by: Actor, verdict: Verdict, **fields: Any) -> str:
        outcome = make_outcome(verdict, by, **fields)
        return describe_outcome(make_item().model_copy(update={"outcome": outcome, "doubt": DOUBT}))

    rules = view(Actor, id="policy", kind=ActorKind.POLICY)
    worker = view(Actor, id="host:1", kind=ActorKind.WORKER)
    assert describe(rules, Verdict.DENIED) == "The rules denied this"
    assert describe(COVERED, Verdict.DENIED) == "Closed: a decision on another item was enough"
    assert describe(BEN, Verdict.ANSWERED, value={"choice": "run_again"}) == "ben chose to run it again"
    assert describe(BEN, Verdict.ANSWERED, value={"choice": "skip", "result": "7"}) == "ben chose to skip it"
    reported = describe(worker, Verdict.ANSWERED, value={"choice": "reported"})
    assert reported == "The worker that started it reported the result late"
    assert describe_outcome(make_item()) == ""


@pytest.mark.parametrize(
    ("verdict", "by", "sentence"),
    [
        ("approved", view(Actor, id="ben", kind="human"), "ben approved this"),
        ("denied", view(Actor, id="timeout", kind="timeout"), "Denied: nobody answered in time"),
        ("postponed", view(Actor, id="ben", kind="bot"), "ben postponed this"),
    ],
)
def test_describe_outcome_of_an_api_response(verdict: str, by: Actor, sentence: str) -> None:
    outcome = view(OutcomeView, verdict=verdict, by=by, start_by=datetime(2026, 11, 22, tzinfo=UTC))
    item = view(
        ItemView,
        item_id="i1",
        kind="approval",
        tool=view(ItemTool, name="refund", args={}),
        terms=view(TermsView, deadline_at=outcome.start_by, fallback=view(Fallback, action="deny")),
        digest="d",
        outcome=outcome,
    )
    assert describe_outcome(item) == sentence


def test_describe_decision() -> None:
    assert describe_decision(make_item(), make_decision("approve", args={"a": 1})) == "ben approved with 4 changes"
    assert describe_decision(make_item(), make_decision("deny", by=TIMEOUT)) == "the deadline denied"
    assert describe_decision(make_item(), make_decision("value", value=7)) == "ben gave a value"


def test_describe_state_labels_items_and_runs() -> None:
    labels = [describe_state(state) for state in ("suspended", "degraded", "call_failed", "not_run", "in_doubt")]
    assert labels == ["suspended", "ended early", "call failed", "never ran", "in doubt"]


@pytest.mark.parametrize(
    ("values", "shown", "look_ms", "sentence"),
    [
        (7, 7, 41_000, "7 of 7 values shown, 41 s"),
        (1, 0, 999, "0 of 1 value shown, 0 s"),
        (27, 3, 250_000, "3 of 27 values shown, 4 min 10 s"),
    ],
)
def test_describe_shown_counts_values_and_time(values: int, shown: int, look_ms: int, sentence: str) -> None:
    measured = view(Shown, display_hash="1:ab", values=values, values_shown=shown, look_ms=look_ms)
    assert describe_shown(measured) == sentence


def test_describe_shown_without_a_measurement() -> None:
    assert describe_shown(None) == "what was shown was not measured"
