"""A change that makes a run ready may hand it to a waiting worker, which may be taken back."""

from typing import Any

import pytest

from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, ResumeSpec, Status
from sayso.core.transitions.deciding import decide, suspend
from sayso.core.transitions.execution import Fence, WaitingWorker, forget_start, hand_over, lease, take_back
from sayso.errors import StaleAttempt
from tests.sayso.samples import T0, ask, draft, intent, types_of, word

W1 = WaitingWorker("w1", 30_000, "job_1")


CALLS = ResumeSpec(resumer="calls")


def decision(action: str = "approve", resume: ResumeSpec = CALLS, **fields: Any) -> Change:
    """Return a decision on an item with these fields."""
    record = suspend(draft(resume=resume), (ask(**fields),), T0).record
    return decide(record, word(record, action), T0)


def test_name_of_a_waiting_worker_reads_back() -> None:
    assert WaitingWorker.read(W1.name) == W1
    assert WaitingWorker.read(WaitingWorker("w1", 5).name) == WaitingWorker("w1", 5)


def test_approved_run_is_leased_and_its_permits_redeemed() -> None:
    handed = hand_over(decision(), W1, T0 + 1)
    record = handed.record
    assert (record.status, record.lease and record.lease.holder, record.due_at_ms) == (
        Status.RESUMING,
        "w1",
        T0 + 30_001,
    )
    assert (record.receipt.job_id, record.receipt.tries) == ("job_1", 1)
    assert [(one.idempotency_key, one.holder, one.attempt) for one in record.journal] == [(f"{record.id}:i1", "w1", 1)]
    assert record.items[0].permit is not None
    assert types_of(handed) == ["decision_recorded", "decided", "run_resuming", "run_resumed", "permit_redeemed"]
    assert (handed.ready, handed.handed_to) == (False, W1.name)


def test_denied_run_is_handed_over_without_permits() -> None:
    handed = hand_over(decision("deny"), W1, T0)
    assert (handed.handed_to, handed.record.journal, handed.record.items[0].permit) == (W1.name, (), None)
    assert types_of(handed)[-1] == "run_resuming"


def test_run_that_begins_is_handed_over_without_permits() -> None:
    begun = suspend(draft(), (), T0)
    handed = hand_over(begun, W1, T0)
    assert (handed.handed_to, handed.record.status, handed.record.journal) == (W1.name, Status.RESUMING, ())
    assert types_of(handed) == [*types_of(begun), "run_resuming"]


def test_run_that_waits_for_more_decisions_stays() -> None:
    two = decision(quorum={"approve": 2, "deny": 1})
    assert hand_over(two, W1, T0) is two


@pytest.mark.parametrize("resume", [ResumeSpec(mode="poll", resumer="calls"), ResumeSpec(resumer="langgraph")])
def test_run_that_others_resume_stays_ready(resume: ResumeSpec) -> None:
    change = decision(resume=resume)
    assert hand_over(change, W1, T0) is change


def test_run_with_calls_that_started_before_stays_ready() -> None:
    change = decision()
    started = change._replace(record=change.record.model_copy(update={"journal": (intent(),)}))
    assert hand_over(started, W1, T0) is started


def test_calls_of_a_saved_batch_stay_ready() -> None:
    """Only the batch in the state tells which of them still run."""
    change = decision()
    saved = change._replace(record=change.record.model_copy(update={"state": seal_state(b"{}").ref}))
    assert hand_over(saved, W1, T0) is saved
    runner = saved.record.model_copy(update={"resume": ResumeSpec()})
    assert hand_over(saved._replace(record=runner), W1, T0).handed_to == W1.name


def test_run_that_a_change_does_not_make_ready_is_left_alone() -> None:
    known = decision()._replace(ready=False)
    assert hand_over(known, W1, T0) is known
    followed = decision()._replace(following=draft(id="sus_2"))
    assert hand_over(followed, W1, T0) is followed


def test_permit_that_is_over_leaves_the_run_ready() -> None:
    change = decision(start_by_s=60)
    assert hand_over(change, W1, T0 + 60_000) is change
    assert hand_over(change, W1, T0 + 59_999).handed_to == W1.name


def test_taken_back_run_is_as_before_and_ready() -> None:
    handed = hand_over(decision(), W1, T0)
    back = take_back(handed.record, Fence("w1", 1, 0), T0 + 5)
    assert back.ready
    assert (back.record.status, back.record.journal, back.record.items[0].permit) == (Status.DECIDED, (), None)
    assert back.record.receipt.tries == 0
    assert types_of(back) == ["permit_returned", "run_released"]


def test_run_that_another_attempt_holds_is_not_taken_back() -> None:
    handed = hand_over(decision(), W1, T0)
    taken_over = lease(handed.record, "w2", 30_000, T0 + 30_000).record
    with pytest.raises(StaleAttempt):
        take_back(taken_over, Fence("w1", 1, 0), T0 + 30_001)


def test_forgotten_start_is_the_leased_record() -> None:
    change = decision()
    forgotten = forget_start(hand_over(change, W1, T0).record)
    assert (forgotten.journal, forgotten.items) == ((), change.record.items)
