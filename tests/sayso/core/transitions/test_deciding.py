"""Transitions of pending suspensions."""

from typing import Any

import pytest

from sayso.core.records.decisions import Shown, Verdict
from sayso.core.records.items import Drill, ItemKind
from sayso.core.records.suspensions import DUE_AGAIN_MS, RunStatus, Status
from sayso.core.transitions.deadlines import expire
from sayso.core.transitions.deciding import cancel, decide, suspend
from sayso.errors import (
    AlreadyDecided,
    Conflict,
    IdempotencyConflict,
    IllegalTransition,
    NotFound,
)
from tests.sayso.samples import T0, ask, draft, pending, person, types_of, word

DEADLINE = T0 + 300_000
ASKED = {"order": "A-0", "amount": 250.5}


def test_suspend_without_items_is_decided() -> None:
    change = suspend(draft(), (), T0)
    assert change.record.status is Status.DECIDED
    assert change.record.run_status is RunStatus.RUNNING
    assert change.ready
    assert types_of(change) == ["run_started"]


def test_suspend_is_due_at_the_earliest_deadline() -> None:
    change = suspend(draft(), (ask(0, timeout_s=600), ask(1, timeout_s=60)), T0)
    assert change.record.status is Status.PENDING
    assert change.record.run_status is RunStatus.SUSPENDED
    assert change.record.due_at_ms == T0 + 60_000
    assert not change.ready
    data = change.events[0].data
    assert (data["tool_name"], data["payload"]["suspension_id"]) == ("refund", "sus_1")
    assert [one["item_id"] for one in data["payload"]["items"]] == ["i1", "i2"]


def test_a_headless_item_without_time_is_decided_at_once_by_its_fallback() -> None:
    change = suspend(draft(), (ask(timeout_s=0),), T0)
    assert change.record.status is Status.DECIDED
    assert change.ready
    assert types_of(change) == ["run_paused", "timed_out", "decided"]


def test_suspend_resolves_the_terms() -> None:
    item = pending(ask(start_by_s=60, remind_after_s=(10,))).items[0]
    assert item.terms.deadline_at_ms == DEADLINE
    assert item.terms.remind_at_ms == (T0 + 10_000,)
    assert (item.terms.rule_id, item.terms.rule_version, item.terms.start_by_s) == ("refunds", "v1", 60)


def test_an_approval_closes_the_item_and_makes_the_run_ready() -> None:
    record = pending()
    change = decide(record, word(record), T0 + 5)
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.by.id, outcome.at_ms) == (Verdict.APPROVED, "ada", T0 + 5)
    assert change.record.status is Status.DECIDED
    assert change.ready
    assert change.record.due_at_ms == T0 + 5 + DUE_AGAIN_MS
    assert types_of(change) == ["decision_recorded", "decided"]


@pytest.mark.parametrize(
    ("kind", "said", "kept"),
    [
        (ItemKind.APPROVAL, {}, {"args": ASKED}),
        (ItemKind.APPROVAL, {"args": {"order": "A-0", "amount": 1}}, {"args": {"order": "A-0", "amount": 1}}),
        (ItemKind.APPROVAL, {"action": "deny"}, {"args": ASKED}),
        (ItemKind.INPUT, {"action": "value", "value": 7}, {"args": {**ASKED, "amount": 7}, "value": 7}),
        (ItemKind.INPUT, {"action": "deny"}, {"args": ASKED}),
    ],
)
def test_decide_records_arguments_and_rule(kind: ItemKind, said: dict[str, Any], kept: dict[str, object]) -> None:
    record = pending(ask(kind=kind))
    recorded, _ = decide(record, word(record, **said), T0).events
    found = {name: recorded.data.get(name) for name in ("args", "value", "rule_id", "rule_version")}
    assert found == {"value": None, "rule_id": "refunds", "rule_version": "v1", **kept}


def test_timeout_records_arguments_and_rule() -> None:
    record = pending(ask(kind=ItemKind.INPUT, fallback={"action": "value", "value": 7}))
    late, _ = expire(record, DEADLINE).events
    kept = {"args": {**ASKED, "amount": 7}, "value": 7, "rule_id": "refunds", "rule_version": "v1"}
    assert kept.items() <= late.data.items()


WHO = {"reviewers": ["ada", "bob"], "quorum": {"approve": 2, "deny": 1}, "no_self_approval": True}


def test_decisions_record_their_possible_reviewers() -> None:
    record = pending(ask(reviewers=("ada", "bob"), quorum={"approve": 2}))
    first, *_ = decide(record, word(record), T0).events
    late, *_ = expire(record, DEADLINE).events
    assert [{name: payload.data[name] for name in WHO} for payload in (first, late)] == [WHO, WHO]


def test_cancel_records_undecided_items() -> None:
    record = pending(ask(0, reviewers=("ada", "bob"), quorum={"approve": 2}), ask(1))
    decided = decide(record, word(record, item_id="i2"), T0).record
    payload = cancel(decided, person("root"), None, T0).events[0].data
    assert [(one["item_id"], one["tool_name"], one["args"]) for one in payload["unanswered"]] == [
        ("i1", "refund", ASKED)
    ]
    assert payload["unanswered"][0].items() >= WHO.items()


def test_an_edit_changes_what_runs_and_its_digest() -> None:
    record = pending()
    outcome = decide(record, word(record, args={"order": "A-0", "amount": 1}), T0).record.items[0].outcome
    assert outcome is not None
    assert outcome.args == {"order": "A-0", "amount": 1}
    assert outcome.digest != record.items[0].digest


def test_a_value_goes_into_its_target_argument_and_nowhere_else() -> None:
    record = pending(ask(kind=ItemKind.INPUT))
    outcome = decide(record, word(record, "value", value=9), T0).record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.args) == (Verdict.ANSWERED, {"order": "A-0", "amount": 9})


def test_several_items_wait_for_each_other() -> None:
    record = pending(ask(0), ask(1))
    first = decide(record, word(record), T0)
    assert first.record.status is Status.PENDING
    assert types_of(first) == ["decision_recorded"]
    second = decide(first.record, word(record, "deny", item_id="i2", message="no"), T0)
    assert second.record.status is Status.DECIDED
    assert second.events[-1].data["approved"] is False


def test_the_same_decision_again_changes_nothing() -> None:
    record = pending()
    decided = decide(record, word(record, idempotency_key="k1"), T0).record
    assert decide(decided, word(record, idempotency_key="k1"), T0 + 9).record is decided
    assert decide(decided, word(record, id="dec_other", idempotency_key="k1"), T0 + 9).record is decided


def test_decide_with_reused_idempotency_key() -> None:
    record = pending()
    decided = decide(record, word(record, idempotency_key="k1"), T0).record
    with pytest.raises(IdempotencyConflict):
        decide(decided, word(record, "deny", idempotency_key="k1"), T0)


def test_second_decision_names_the_first_reviewer() -> None:
    record = pending()
    decided = decide(record, word(record, "deny", by="ada", message="too much."), T0).record
    with pytest.raises(AlreadyDecided, match=r"ada denied this at .*: too much\. Nothing") as caught:
        decide(decided, word(record, by="bob"), T0 + 1)
    assert caught.value.facts["decided_by"] == "ada"


def test_quorum_needs_different_people_and_equal_arguments() -> None:
    record = pending(ask(quorum={"approve": 2, "deny": 1}))
    first = decide(record, word(record, by="ada"), T0).record
    assert first.status is Status.PENDING
    with pytest.raises(Conflict, match="already decided on this item"):
        decide(first, word(record, by="ada", id="dec_again"), T0)
    edited = decide(first, word(record, by="bob", args={"order": "A-0", "amount": 2}), T0).record
    assert edited.status is Status.PENDING, "an approval of other arguments does not count together"
    assert decide(edited, word(record, by="carla"), T0).record.status is Status.DECIDED


def test_one_denial_is_enough_where_the_terms_say_so() -> None:
    record = pending(ask(quorum={"approve": 3, "deny": 1}))
    assert decide(record, word(record, "deny"), T0).record.status is Status.DECIDED


def test_decide_on_cancelled_run() -> None:
    record = pending()
    change = cancel(record, person("ada"), "wrong order", T0 + 1)
    assert types_of(change) == ["run_cancelled"]
    assert change.record.run_status is RunStatus.CANCELLED
    assert change.record.due_at_ms is None
    assert cancel(change.record, person("bob"), None, T0 + 2).record is change.record
    with pytest.raises(IllegalTransition, match="was cancelled"):
        decide(change.record, word(record), T0 + 2)


def test_an_unknown_item_is_not_found() -> None:
    record = pending()
    with pytest.raises(NotFound, match="no item 'i9'"):
        decide(record, word(record).model_copy(update={"item_id": "i9"}), T0)


def test_decision_and_its_event_keep_what_was_shown() -> None:
    record = pending()
    shown = Shown(display_hash="1:ab", values=2, values_shown=1, paths=("order",), look_ms=41_000)
    change = decide(record, word(record, "deny", shown=shown), T0)
    assert change.record.items[0].decisions[0].shown == shown
    assert change.events[0].data["shown"] == shown.model_dump(mode="json")


def test_unmeasured_decision_says_so_in_its_event() -> None:
    record = pending()
    change = decide(record, word(record), T0)
    assert change.events[0].data["shown"] is None


def test_repeated_decision_may_report_another_look_time() -> None:
    record = pending()
    shown = Shown(display_hash="1:ab", values=2, values_shown=2, look_ms=41_000)
    once = decide(record, word(record, shown=shown), T0).record
    again = decide(once, word(record, shown=shown.model_copy(update={"look_ms": 42_000})), T0 + 1)
    assert (again.record, again.events) == (once, ())


def test_first_decision_of_its_reviewer_closes_a_drill_under_a_quorum() -> None:
    drill = Drill(template="unknown-recipient", signs=("Nobody knows it.",), planted_by="root", reviewer="ada")
    planted = ask(quorum={"approve": 2}).model_copy(update={"drill": drill})
    record = pending(planted)
    assert decide(record, word(record), T0).record.status is Status.DECIDED
    asked = pending(planted.model_copy(update={"drill": drill.model_copy(update={"reviewer": ""})}))
    assert decide(asked, word(asked), T0).record.status is Status.PENDING
