"""Transitions of runs whose client runs the approved calls."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from sayso.core.canonical_json import MAX_DEPTH, MAX_NODES
from sayso.core.records.chain import find_break
from sayso.core.records.decisions import Report
from sayso.core.records.events import TrailHead
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import Change, ResumeSpec, RunStatus, Status, SuspensionRecord
from sayso.core.records.terms import REPORT_WITHIN_S
from sayso.core.records.tools import ToolResult
from sayso.core.transitions.client_execution import client_redeem, conclude, conclude_lost, lapse, mark_in_doubt
from sayso.core.transitions.closing import next_due
from sayso.core.transitions.deciding import cancel, decide, report, suspend
from sayso.core.transitions.execution import lease
from sayso.core.transitions.legal import LEGAL, check_step
from sayso.core.transitions.permits import recover_start
from sayso.errors import AlreadyRedeemed, Conflict, DeadlinePassed, IllegalTransition, SaysoError, StaleAttempt
from tests.sayso.samples import T0, ask, draft, person, types_of, word
from tests.trails import append_events

POLL = ResumeSpec(mode="poll", resumer="poll")
DONE = Report(success=True, output={"ref": "R-1"}, at_ms=0)
BROKE = Report(success=False, error="the bank said no", at_ms=0)
START_BY_MS = T0 + 60_000


def polled(*drafts: ItemDraft, **fields: Any) -> SuspensionRecord:
    """Return a pending suspension of a client, with one minute to start its calls."""
    return suspend(draft(resume=POLL, **fields), drafts or (ask(start_by_s=60),), T0).record


def approved(*drafts: ItemDraft, **fields: Any) -> SuspensionRecord:
    """Return the same, with everything approved."""
    record = polled(*drafts, **fields)
    for item in record.items:
        record = decide(record, word(record, item_id=item.item_id), T0).record
    return record


def idempotent(**terms: Any) -> ItemDraft:
    one = ask(start_by_s=60, **terms)
    return one.model_copy(update={"tool": one.tool.model_copy(update={"idempotent": True})})


def test_decided_client_run_is_due_when_its_permits_lapse() -> None:
    record = polled()
    change = decide(record, word(record), T0)
    assert (change.record.status, change.ready) == (Status.DECIDED, False)
    assert change.record.due_at_ms == START_BY_MS
    with pytest.raises(IllegalTransition, match="executed by its client"):
        lease(change.record, "w1", 30_000, T0)


def test_client_redeem_once_for_the_first_key() -> None:
    change = client_redeem(approved(), "i1", "mine", T0 + 1)
    record = change.record
    assert types_of(change) == ["run_resumed", "permit_redeemed"]
    assert record.status is Status.RESUMING
    permit = record.items[0].permit
    assert permit is not None
    assert (permit.holder, permit.attempt, permit.redeemed_at_ms) == ("mine", 1, T0 + 1)
    assert record.due_at_ms == permit.report_by_ms == T0 + 1 + REPORT_WITHIN_S * 1000
    assert client_redeem(record, "i1", "mine", START_BY_MS + 1).record is record, "the same answer, however late"
    with pytest.raises(AlreadyRedeemed, match="by mine") as refused:
        client_redeem(record, "i1", "other", T0 + 2)
    assert refused.value.facts == {"consumed_at_ms": T0 + 1, "reported": False}


def test_client_redeem_too_late_or_without_permit() -> None:
    with pytest.raises(DeadlinePassed):
        client_redeem(approved(), "i1", "k", START_BY_MS)
    with pytest.raises(IllegalTransition, match="Cannot redeem: the suspension is pending, not decided or"):
        client_redeem(polled(), "i1", "k", T0)
    record = polled()
    with pytest.raises(IllegalTransition, match="is not approved"):
        client_redeem(decide(record, word(record, "deny"), T0).record, "i1", "k", T0)
    with pytest.raises(IllegalTransition):
        client_redeem(cancel(approved(), person("ada"), None, T0).record, "i1", "k", T0)
    with pytest.raises(IllegalTransition, match="Workers run"):
        client_redeem(approved().model_copy(update={"resume": ResumeSpec()}), "i1", "k", T0)


def test_cancel_lists_calls_in_flight() -> None:
    record = client_redeem(approved(), "i1", "mine", T0 + 1).record
    assert cancel(approved(), person("ada"), None, T0).events[0].data["calls_in_flight"] == []
    assert cancel(record, person("ada"), None, T0 + 2).events[0].data["calls_in_flight"] == ["call_0"]


def test_the_report_of_the_last_call_ends_the_run() -> None:
    record = client_redeem(approved(), "i1", "mine", T0 + 1).record
    with pytest.raises(StaleAttempt, match="redeemed by mine"):
        conclude(record, "i1", "other", DONE, T0 + 2)
    change = conclude(record, "i1", "mine", DONE, T0 + 2)
    assert types_of(change) == ["outcome_reported", "run_completed"]
    end = change.record.end
    assert end is not None
    assert (change.record.status, end.status, end.error) == (Status.RESUMED, RunStatus.COMPLETED, None)
    assert change.record.due_at_ms is None
    assert conclude(change.record, "i1", "mine", DONE, T0 + 3).record is change.record
    with pytest.raises(Conflict, match="A different result"):
        conclude(change.record, "i1", "mine", BROKE, T0 + 3)
    with pytest.raises(AlreadyRedeemed):
        client_redeem(change.record, "i1", "other", T0 + 3)


def test_conclude_before_redeem() -> None:
    with pytest.raises(IllegalTransition, match="Redeem it before"):
        conclude(approved(), "i1", "mine", DONE, T0)


def test_client_run_ends_with_its_last_call() -> None:
    record = approved(ask(0, start_by_s=60), ask(1, start_by_s=60))
    record = conclude(client_redeem(record, "i1", "a", T0).record, "i1", "a", BROKE, T0 + 1).record
    assert (record.status, record.due_at_ms) == (Status.RESUMING, START_BY_MS)
    assert lapse(record, START_BY_MS - 1).record is record
    change = lapse(record, START_BY_MS)
    assert types_of(change) == ["permit_lapsed", "run_failed"]
    assert change.record.end is not None
    assert "its client did not start it before" in str(change.record.end.error)


def test_lapse_of_unused_permit_ends_the_run() -> None:
    change = lapse(approved(), START_BY_MS)
    assert types_of(change) == ["permit_lapsed", "run_failed"]
    assert (change.record.status, change.record.due_at_ms) == (Status.RESUMED, None)


def test_conclude_with_results_over_the_json_limits() -> None:
    record = approved(*(ask(start_by_s=60, index=index) for index in range(2)))
    long: list[JsonValue] = [0] * (MAX_NODES - 10)
    deep: JsonValue = 0
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    change = Change(record)
    for item_id, output in (("i1", long), ("i2", [long, deep])):
        record = client_redeem(record, item_id, "mine", T0 + 1).record
        change = conclude(record, item_id, "mine", DONE.model_copy(update={"output": output}), T0 + 2)
        record = change.record
    _, entries = append_events(TrailHead(), change.events, T0 + 2)
    assert entries[-1].type == "run_completed"
    assert find_break(entries) is None


def test_lapse_without_report_ends_the_run() -> None:
    record = client_redeem(approved(), "i1", "mine", T0, report_within_s=10).record
    change = lapse(record, T0 + 10_000)
    assert types_of(change) == ["permit_lapsed", "run_degraded"]
    assert change.record.end is not None
    assert "its client reported no result" in str(change.record.end.error)


@pytest.mark.parametrize(
    ("on_deny", "status"),
    [("continue", RunStatus.COMPLETED), ("degrade", RunStatus.DEGRADED), ("fail", RunStatus.FAILED)],
)
def test_denied_suspension_ends_at_once(on_deny: str, status: RunStatus) -> None:
    record = polled(on_deny=on_deny)
    denied = decide(record, word(record, "deny", message="too much"), T0 + 5).record
    assert denied.due_at_ms == T0 + 5
    change = lapse(denied, T0 + 5)
    assert change.record.end is not None
    assert change.record.end.status is status
    assert "denied by ada: too much" in str(change.record.end.result)


def test_client_redeem_after_a_denial_that_ends_the_run() -> None:
    record = polled(ask(0, start_by_s=60), ask(1, start_by_s=60), on_deny="fail")
    record = decide(record, word(record, item_id="i1"), T0).record
    record = decide(record, word(record, "deny", item_id="i2"), T0).record
    with pytest.raises(IllegalTransition, match="was denied"):
        client_redeem(record, "i1", "k", T0)


def test_client_redeem_idempotent_call_until_reported() -> None:
    record = client_redeem(approved(idempotent()), "i1", "a", T0).record
    again = client_redeem(record, "i1", "b", START_BY_MS + 1).record
    permit = again.items[0].permit
    assert permit is not None
    assert (permit.holder, permit.attempt) == ("b", 2)
    with pytest.raises(StaleAttempt):
        conclude(again, "i1", "a", DONE, T0)
    reported = conclude(again, "i1", "b", DONE, START_BY_MS + 2).record
    with pytest.raises(AlreadyRedeemed):
        client_redeem(reported, "i1", "c", START_BY_MS + 3)


def in_doubt() -> Change:
    record = client_redeem(approved(), "i1", "mine", T0).record
    return mark_in_doubt(record, "i1", draft(id="sus_2", resume=POLL), T0 + 1)


def test_mark_in_doubt_creates_the_next_suspension() -> None:
    change = in_doubt()
    following = change.following
    assert following is not None
    assert (change.record.status, change.record.following_id, following.previous_id) == ("resumed", "sus_2", "sus_1")
    doubt = following.items[0].doubt
    assert doubt is not None
    assert (doubt.holder, doubt.idempotency_key) == ("mine", "sus_1:i1")
    asked = following.items[0].prompt
    assert "by its client (key mine)" in str(asked.body)
    assert "worker" not in f"{asked.body}{asked.reason}"
    assert not change.ready


def test_check_step_message() -> None:
    with pytest.raises(IllegalTransition, match="Cannot redeem: the suspension is resumed, not"):
        check_step(in_doubt().record, "client_redeem")


@pytest.mark.parametrize(("choice", "status"), [("skip", "completed"), ("fail", "failed")])
def test_client_run_ends_when_the_call_must_not_run_again(choice: str, status: str) -> None:
    following = in_doubt().following
    assert following is not None
    answered = decide(following, word(following, "value", value={"choice": choice}), T0 + 2).record
    with pytest.raises(IllegalTransition, match="does not allow another run"):
        client_redeem(answered, "i1", "next", T0 + 3)
    end = lapse(answered, T0 + 3).record.end
    assert end is not None
    assert end.status == status


def test_run_again_allows_one_redeem_with_the_same_key() -> None:
    following = in_doubt().following
    assert following is not None
    answered = decide(following, word(following, "value", value={"choice": "run_again"}), T0 + 2).record
    again = client_redeem(answered, "i1", "next", T0 + 3).record
    with pytest.raises(AlreadyRedeemed):
        client_redeem(again, "i1", "another", T0 + 3)
    asked = mark_in_doubt(again, "i1", draft(id="sus_3", resume=POLL), T0 + 4).following
    assert asked is not None
    assert asked.items[0].doubt is not None
    assert asked.items[0].doubt.idempotency_key == "sus_1:i1"


def test_late_report_closes_the_doubt() -> None:
    following = in_doubt().following
    assert following is not None
    late = ToolResult(call_id="call_0", tool_name="refund", success=True, output="R-1")
    unfrozen = report(following, "sus_1:i1", "mine", late, T0 + 2).record
    end = lapse(unfrozen, T0 + 2).record.end
    assert end is not None
    assert end.status is RunStatus.COMPLETED
    assert "R-1" in str(end.result)


def test_mark_in_doubt_refuses_other_calls() -> None:
    with pytest.raises(IllegalTransition):
        mark_in_doubt(approved(), "i1", draft(id="sus_2"), T0)
    done = approved(ask(0, start_by_s=60), ask(1, start_by_s=60))
    with pytest.raises(IllegalTransition, match="Other calls"):
        mark_in_doubt(client_redeem(done, "i1", "a", T0).record, "i1", draft(id="sus_2"), T0)


STEPS: dict[str, Any] = {
    "decide": lambda record, item, key, now: decide(record, word(record, by=key, item_id=item), now),
    "decide deny": lambda record, item, key, now: decide(record, word(record, "deny", by=key, item_id=item), now),
    "client_redeem": lambda record, item, key, now: client_redeem(record, item, key, now, 30),
    "conclude": lambda record, item, key, now: conclude(record, item, key, DONE, now),
    "lapse": lambda record, item, key, now: lapse(record, now),
    "mark_in_doubt": lambda record, item, key, now: mark_in_doubt(record, item, draft(id="sus_2", resume=POLL), now),
    "cancel": lambda record, item, key, now: cancel(record, person(key), None, now),
}
MOVES = st.lists(
    st.tuples(
        st.sampled_from([*STEPS, "client_redeem", "conclude", "client_redeem", "decide"]),
        st.sampled_from(["i1", "i2"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 20_000),
    ),
    max_size=20,
)


@settings(max_examples=400, deadline=None)
@given(MOVES, st.sampled_from(["continue", "fail"]))
def test_client_steps_in_any_order_start_a_call_once(moves: list[Any], on_deny: str) -> None:
    record, now_ms = polled(ask(0, start_by_s=60), ask(1, start_by_s=60), on_deny=on_deny), T0
    started: dict[str, str] = {}
    for name, item_id, key, passed_ms in moves:
        now_ms += passed_ms
        try:
            change = STEPS[name](record, item_id, key, now_ms)
        except SaysoError:
            continue
        after, legal = change.record, LEGAL[name.split(" ", maxsplit=1)[0]]
        assert not change.ready, "no worker is troubled"
        if name == "client_redeem":
            assert started.setdefault(item_id, key) == key, "a call is started once"
        if after is not record:
            assert record.status in legal.sources
            assert after.status in legal.targets
            assert {event.type for event in change.events} <= legal.events
            assert record.status not in (Status.RESUMED, Status.CANCELLED)
        over = after.status in (Status.RESUMED, Status.CANCELLED)
        assert (after.due_at_ms is None) == over, "every waiting suspension is on the schedule"
        if after.status is Status.RESUMED:
            assert (after.end is None) != (after.following_id is None)
        record = after
    while record.due_at_ms is not None and record.status is not Status.PENDING:
        looked = lapse(record, record.due_at_ms).record
        assert looked is not record, "the clock is never called in vain"
        record = looked
    assert record.status is not Status.PENDING or next_due(record) is not None


def test_result_of_a_call_whose_permit_the_store_lost_is_recorded_as_of_one() -> None:
    change = conclude_lost(approved(), "i1", "mine", DONE, T0 + 5)
    permit = change.record.items[0].permit
    assert permit is not None
    assert (permit.holder, permit.redeemed_at_ms, permit.report) == (
        "mine",
        T0 + 5,
        DONE.model_copy(update={"at_ms": T0 + 5}),
    )
    assert types_of(change)[:2] == ["permit_redeemed", "outcome_reported"]
    assert change.events[0].data["recovered"] is True
    assert change.record.status is Status.RESUMED
    with pytest.raises(IllegalTransition):
        conclude_lost(cancel(approved(), person("ada"), None, T0).record, "i1", "mine", DONE, T0)


def test_permit_that_the_store_lost_is_in_its_record_again() -> None:
    before = approved()
    started = client_redeem(before, "i1", "mine", T0 + 1).record
    change = recover_start(before, started, T0 + 5)
    assert (change.record.status, change.record.items) == (Status.RESUMING, started.items)
    assert change.record.due_at_ms == started.due_at_ms
