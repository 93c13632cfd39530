"""Transitions of a worker's run."""

from collections.abc import Callable
from typing import Any

import pytest

from sayso.core.records.decisions import Erasure, Permit
from sayso.core.records.events import Event, EventType
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.core.transitions.deciding import cancel, decide, suspend
from sayso.core.transitions.execution import (
    MAX_TRIES,
    Fence,
    checkpoint,
    give_up,
    lease,
    postpone,
    redeem,
    redrive,
    release,
    renew,
    revive,
    settle,
    suspend_again,
)
from sayso.core.transitions.permits import approved_args
from sayso.errors import Conflict, DeadlinePassed, IllegalTransition, LeaseHeld, StaleAttempt, StaleDigest
from tests.sayso.samples import T0, ask, draft, intent, pending, person, types_of, word

FENCE = Fence("w1", 1, 30_000)
STATE = seal_state(b"{}")
DONE = RunEnd(status=RunStatus.COMPLETED, result={"text": "done"})
NOTE = (Event(type=EventType.WARNING, data={"message": "x"}),)


def decided(**fields: Any) -> SuspensionRecord:
    record = pending(*fields.pop("drafts", ()))
    return decide(record, word(record, **fields), T0).record


def leased(**fields: object) -> SuspensionRecord:
    return lease(decided(**fields), "w1", 30_000, T0).record


def test_a_lease_gives_the_run_to_one_worker_for_a_while() -> None:
    change = lease(decided(), "w1", 30_000, T0 + 1)
    assert change.record.status is Status.RESUMING
    assert change.record.due_at_ms == T0 + 30_001
    assert types_of(change) == ["run_resuming"]
    with pytest.raises(LeaseHeld, match="w1 has leased this run"):
        lease(change.record, "w2", 30_000, T0 + 30_000)
    assert lease(change.record, "w1", 30_000, T0 + 2).record is change.record


def test_a_lapsed_lease_goes_to_the_next_attempt_and_fences_the_first_off() -> None:
    taken_over = lease(leased(), "w2", 30_000, T0 + 30_000).record
    assert taken_over.lease is not None
    assert (taken_over.lease.holder, taken_over.lease.attempt) == ("w2", 2)
    steps: tuple[Callable[[], Change], ...] = (
        lambda: renew(taken_over, FENCE, T0),
        lambda: redeem(taken_over, FENCE, (intent(),), (), T0),
        lambda: checkpoint(taken_over, FENCE, STATE, (), T0),
        lambda: settle(taken_over, FENCE, DONE, (), T0),
        lambda: suspend_again(taken_over, FENCE, draft(id="sus_2"), (ask(),), STATE, (), T0),
        lambda: postpone(taken_over, FENCE, "x", T0),
        lambda: give_up(taken_over, FENCE, "x", (), T0),
    )
    for step in steps:
        with pytest.raises(StaleAttempt):
            step()


def test_every_step_of_a_worker_extends_its_lease() -> None:
    assert renew(leased(), FENCE, T0 + 10_000).record.due_at_ms == T0 + 40_000


def test_redeem_once_and_journalled() -> None:
    change = redeem(leased(), FENCE, (intent(),), NOTE, T0 + 1)
    item = change.record.items[0]
    assert item.permit is not None
    assert (item.permit.holder, item.permit.attempt) == ("w1", 1)
    assert [one.call_id for one in change.record.journal] == ["call_0"]
    assert types_of(change) == ["run_resumed", "warning", "permit_redeemed"]
    with pytest.raises(IllegalTransition, match="already redeemed"):
        redeem(change.record, FENCE, (intent(),), (), T0 + 2)


def test_an_idempotent_call_may_be_started_again_by_the_next_attempt() -> None:
    plain = ask()
    again = plain.model_copy(update={"tool": plain.tool.model_copy(update={"idempotent": True})})
    spent = redeem(leased(drafts=(again,)), FENCE, (intent(),), (), T0).record
    next_one = lease(spent, "w2", 30_000, T0 + 30_000).record
    assert [one.index for one in next_one.journal] == [0], "what was begun is still known"
    late_ms = T0 + 3_600_000 + 1
    assert redeem(next_one, Fence("w2", 2, 30_000), (intent(),), (), late_ms).record.items[0].permit is not None


def test_a_permit_not_started_in_time_is_refused() -> None:
    record = leased(drafts=(ask(start_by_s=60),))
    assert redeem(record, FENCE, (intent(),), (), T0 + 59_999).record.items[0].permit is not None
    with pytest.raises(DeadlinePassed, match="permit for refund ended"):
        redeem(record, FENCE, (intent(),), (), T0 + 60_000)


def test_a_denied_item_has_no_permit() -> None:
    with pytest.raises(IllegalTransition, match="is not approved"):
        redeem(leased(action="deny"), FENCE, (intent(),), (), T0)


def test_arguments_changed_after_the_decision_are_never_run() -> None:
    record = leased(args={"order": "A-0", "amount": 3})
    item = record.items[0]
    assert approved_args(item) == {"order": "A-0", "amount": 3}
    assert item.outcome is not None
    forged = item.model_copy(update={"outcome": item.outcome.model_copy(update={"args": {"amount": 9_999}})})
    with pytest.raises(StaleDigest, match="not those decided on"):
        redeem(record.model_copy(update={"items": (forged,)}), FENCE, (intent(),), (), T0)


@pytest.mark.parametrize(
    "change",
    [
        {"tool": {"name": "transfer"}},
        {"tool": {"args": {"order": "A-0", "amount": 250.6}}},
        {"tool": {"definition": "e" * 64}},
        {"target_arg": "order"},
        {"terms": {"rule_version": "v2"}},
        {"terms": {"deadline_at_ms": T0}},
    ],
    ids=str,
)
def test_every_field_the_digest_binds_is_checked_before_the_call(change: dict[str, object]) -> None:
    record = leased()
    item = record.items[0]
    update = {
        name: getattr(item, name).model_copy(update=value) if isinstance(value, dict) else value
        for name, value in change.items()
    }
    with pytest.raises(StaleDigest):
        redeem(record.model_copy(update={"items": (item.model_copy(update=update),)}), FENCE, (intent(),), (), T0)


def test_a_permit_of_another_run_tenant_or_suspension_does_not_fit() -> None:
    record = leased()
    for other in (
        record.model_copy(update={"tenant": "other"}),
        record.model_copy(update={"id": "sus_9"}),
        record.model_copy(update={"run": record.run.model_copy(update={"id": "run_9"})}),
    ):
        with pytest.raises(StaleDigest):
            redeem(other, FENCE, (intent(),), (), T0)


def test_a_checkpoint_clears_the_journal_and_keeps_the_state() -> None:
    begun = redeem(leased(), FENCE, (intent(),), (), T0).record
    change = checkpoint(begun, FENCE, STATE, NOTE, T0)
    assert change.record.journal == ()
    assert (change.record.state, change.state) == (STATE.ref, STATE)
    assert types_of(change) == ["warning"], "run_resumed was recorded before"


def test_settle_records_resume_and_end_once() -> None:
    change = settle(leased(action="deny"), FENCE, DONE, NOTE, T0)
    assert types_of(change) == ["run_resumed", "warning", "run_completed"]
    assert change.events[0].data["approved"] is False
    assert (change.record.status, change.record.run_status) == (Status.RESUMED, RunStatus.COMPLETED)
    assert change.record.due_at_ms is None
    assert settle(change.record, FENCE, DONE, (), T0 + 1).record is change.record


def test_suspend_again_is_one_change() -> None:
    change = suspend_again(leased(), FENCE, draft(id="sus_2"), (ask(),), STATE, NOTE, T0 + 5)
    assert change.record.status is Status.RESUMED
    assert change.following is not None
    assert (change.record.following_id, change.following.previous_id) == ("sus_2", "sus_1")
    assert change.following.status is Status.PENDING
    assert types_of(change) == ["run_resumed", "warning", "run_paused"]


def test_postpone_backs_off_then_gives_up() -> None:
    record, now_ms = leased(), T0
    for attempt in range(1, MAX_TRIES):
        change = postpone(record, Fence("w1", attempt, 30_000), "no such agent", now_ms)
        assert types_of(change) == ["run_postponed"]
        assert change.record.receipt.error == "no such agent"
        assert change.record.due_at_ms == now_ms + 1000 * 2**attempt
        now_ms = change.record.due_at_ms or 0
        record = lease(change.record, "w1", 30_000, now_ms).record
    last = postpone(record, Fence("w1", MAX_TRIES, 30_000), "no such agent", now_ms)
    assert (last.record.status, last.record.run_status) == (Status.FAILED, RunStatus.FAILED)
    assert types_of(last) == ["run_failed"]


def test_redrive_backs_off_without_workers() -> None:
    record = decided()
    assert redrive(record, T0 + 2_999).record is record
    first = redrive(record, T0 + 3_000)
    assert first.ready
    assert first.record.due_at_ms == T0 + 6_000
    second = redrive(first.record, T0 + 6_000)
    assert second.record.due_at_ms == T0 + 12_000


@pytest.mark.parametrize("since_ms", [T0 - 5_000, T0], ids=["behind others", "the first"])
def test_redrive_does_not_queue_a_queued_run_twice(since_ms: int) -> None:
    record = decided()
    first = redrive(record, T0 + 3_000, since_ms)
    assert not first.ready
    assert first.record.receipt.redrives == 0
    assert "it is queued" in str(first.record.receipt.error)
    assert first.record.due_at_ms == T0 + 6_000
    later = redrive(first.record, T0 + 100_000, since_ms)
    assert later.record.due_at_ms == T0 + 130_000, "the interval grows up to this limit"


@pytest.mark.parametrize("since_ms", [None, T0 + 1], ids=["nobody is in line", "all in line came later"])
def test_redrive_queues_a_run_lost_from_the_ready_list(since_ms: int | None) -> None:
    assert redrive(decided(), T0 + 3_000, since_ms).ready


def test_redrive_after_a_lapsed_lease() -> None:
    assert redrive(leased(), T0 + 30_000, T0 - 5_000).ready


def test_redrive_before_the_due_time_ignores_the_queue() -> None:
    record = decided()
    ahead = record.model_copy(update={"receipt": record.receipt.model_copy(update={"enqueued_at_ms": T0 + 90_000})})
    assert redrive(ahead, T0 + 3_000, T0 - 5_000).ready, "the clock was wrong when it was noted"


def test_a_cancelled_run_refuses_its_workers_writes() -> None:
    record = cancel(redeem(leased(), FENCE, (intent(),), (), T0).record, person("ada"), None, T0)
    assert record.events[0].data["calls_in_flight"] == ["call_0"]
    with pytest.raises(IllegalTransition, match="Cannot checkpoint: the suspension is cancelled"):
        checkpoint(record.record, FENCE, STATE, (), T0)


def test_starting_is_the_same_as_resuming() -> None:
    started = lease(suspend(draft(), (), T0).record, "w1", 30_000, T0).record
    change = checkpoint(started, FENCE, STATE, NOTE, T0)
    assert types_of(change) == ["warning"], "run_started records a start, not run_resumed"


def test_release_makes_the_run_ready_without_a_try() -> None:
    change = release(leased(), FENCE, "the worker stops", T0 + 1)
    assert (change.record.status, change.ready, change.record.receipt.tries) == (Status.DECIDED, True, 0)
    assert types_of(change) == ["run_released"]
    again = lease(change.record, "w2", 30_000, T0 + 2).record
    assert again.lease is not None
    assert again.lease.attempt == 2, "the released worker is fenced off"
    begun = redeem(leased(), FENCE, (intent(),), (), T0).record
    with pytest.raises(IllegalTransition, match="under way"):
        release(begun, FENCE, "the worker stops", T0 + 1)


def test_a_run_whose_workers_keep_dying_is_given_up_and_can_be_revived() -> None:
    record, now_ms = decided(), T0
    for _ in range(MAX_TRIES):
        record = lease(record, "w1", 1_000, now_ms).record
        now_ms += 1_000
    given_up = redrive(record, now_ms)
    assert types_of(given_up) == ["run_failed"]
    assert (given_up.record.status, given_up.record.due_at_ms, given_up.ready) == (Status.FAILED, None, False)
    back = revive(given_up.record, person("ada"), now_ms)
    assert (back.record.status, back.ready, back.record.receipt.tries) == (Status.DECIDED, True, 0)
    assert back.record.end is None
    assert back.record.items[0].outcome == given_up.record.items[0].outcome


def test_erased_run_is_not_revived() -> None:
    failed = give_up(leased(), FENCE, "x", (), T0).record
    erased = failed.model_copy(update={"erasure": Erasure(by=person("root"), at_ms=T0, reason="asked", seq=9)})
    with pytest.raises(Conflict, match="Start a new run"):
        revive(erased, person("ada"), T0)
    assert revive(failed, person("ada"), T0).ready


def test_receipt_has_the_job_and_call_results() -> None:
    taken = lease(decided(), "w1", 30_000, T0, "drain_1").record
    assert taken.receipt.job_id == "drain_1"
    begun = redeem(taken, FENCE, (intent(),), (), T0 + 1).record
    completed = Event(type=EventType.TOOL_COMPLETED, data={"index": 0, "success": False})
    for ended in (
        settle(begun, FENCE, DONE, (completed,), T0 + 2).record,
        checkpoint(begun, FENCE, STATE, (completed,), T0 + 2).record,
    ):
        permit = ended.items[0].permit
        assert permit is not None
        assert (permit.redeemed_at_ms, permit.ended_at_ms, permit.success) == (T0 + 1, T0 + 2, False)


def test_call_without_result_has_not_ended() -> None:
    begun = redeem(leased(), FENCE, (intent(),), (), T0).record
    other = Event(type=EventType.TOOL_COMPLETED, data={"index": 1, "success": True})
    permit = settle(begun, FENCE, DONE, (other,), T0 + 2).record.items[0].permit
    assert permit is not None
    assert (permit.ended_at_ms, permit.success) == (None, None)


def test_receipt_explains_why_a_decided_run_waits() -> None:
    waiting = redrive(decided(), T0 + 3_000).record
    assert "No worker has leased it" in str(waiting.receipt.error)
    taken = lease(waiting, "w1", 30_000, T0 + 3_001).record
    sent_back = release(taken, FENCE, "root has frozen refund", T0 + 3_002, ("refund",)).record
    assert sent_back.receipt.error == "root has frozen refund"
    again = lease(sent_back, "w1", 30_000, T0 + 3_003).record
    begun = redeem(again, Fence("w1", 2, 30_000), (intent(),), (), T0 + 3_004).record
    assert begun.receipt.error is None


def test_permit_ending_is_noted_by_its_own_event() -> None:
    asked = pending(ask(0), ask(1))
    first = decide(asked, word(asked), T0).record
    record = lease(decide(first, word(first, item_id="i2"), T0).record, "w1", 30_000, T0).record

    def ended(index: int, kind: EventType = EventType.TOOL_COMPLETED, *, success: bool = True) -> Event:
        return Event(type=kind, data={"index": index, "success": success})

    one = redeem(record, FENCE, (intent(),), (), T0).record
    events = (ended(0), ended(0, EventType.WARNING, success=False))
    completed = checkpoint(one, FENCE, STATE, events, T0 + 1).record
    assert completed.items[0].permit is not None
    assert (completed.items[0].permit.ended_at_ms, completed.items[0].permit.success) == (T0 + 1, True)
    two = redeem(completed, FENCE, (intent("i2", 1),), (), T0 + 1).record
    last = checkpoint(two, FENCE, STATE, (ended(0, success=False), ended(1)), T0 + 2).record
    assert [item.permit and item.permit.ended_at_ms for item in last.items] == [T0 + 1, T0 + 2]


def test_failed_calls_carry_over_to_the_next_suspension() -> None:
    record = leased()
    failed = Permit(redeemed_at_ms=T0, attempt=1, holder="w1", ended_at_ms=T0, success=False)
    items = tuple(item.model_copy(update={"permit": failed}) for item in record.items)
    record = record.model_copy(update={"items": items})
    following = suspend_again(record, FENCE, draft(id="sus_2"), (ask(),), STATE, NOTE, T0 + 5).following
    assert following is not None
    assert following.failed_calls == len(items)
