"""After the store lost changes, no permit and no lease of before counts, and what may have run is in doubt."""

from typing import Any

import pytest

from sayso.core.records.decisions import Report
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import Change, ResumeSpec, Status, SuspensionRecord
from sayso.core.transitions.client_execution import client_redeem, conclude
from sayso.core.transitions.deadlines import expire, see
from sayso.core.transitions.deciding import decide, suspend
from sayso.core.transitions.due import void_starts
from sayso.core.transitions.execution import Fence, lease, redeem
from sayso.errors import AlreadyRedeemed, StaleAttempt
from tests.sayso.samples import T0, ask, draft, intent, person, types_of, word

WHY = "This desk was restored."
POLL, CALLS = ResumeSpec(mode="poll", resumer="calls"), ResumeSpec(resumer="calls")
LEASE_MS = 30_000


def begin(*drafts: ItemDraft, resume: ResumeSpec = CALLS, **fields: Any) -> SuspensionRecord:
    return suspend(draft(resume=resume, **fields), drafts or (ask(),), T0).record


def approve(record: SuspensionRecord, action: str = "approve") -> SuspensionRecord:
    for item in record.items:
        record = decide(record, word(record, action, item_id=item.item_id), T0).record
    return record


def void(record: SuspensionRecord, now_ms: int = T0 + 1) -> Change:
    following = draft(resume=record.resume).model_copy(update={"id": "sus_next", "run": record.run})
    return void_starts(record, following, "restore", WHY, now_ms)


def test_pending_item_says_that_it_may_have_been_decided() -> None:
    voided = void(begin()).record
    assert voided.status is Status.PENDING
    assert str(voided.items[0].prompt.reason).startswith(WHY)
    assert voided.items[0].digest == begin().items[0].digest


def test_approved_call_is_as_one_of_a_lost_worker() -> None:
    change = void(approve(begin()))
    record = change.record
    (lost,) = record.journal
    assert (record.status, record.due_at_ms, lost.holder, lost.result) == (Status.RESUMING, T0 + 1, "restore", None)
    assert record.items[0].permit is not None
    assert types_of(change) == ["run_resuming", "run_resumed", "permit_redeemed"]
    again = lease(record, "w1", LEASE_MS, T0 + 1).record
    assert (again.journal, again.lease and again.lease.attempt) == (record.journal, 2)


def test_leased_run_loses_its_worker_and_its_unstarted_calls_are_in_doubt() -> None:
    leased = lease(approve(begin(ask(), ask(1))), "w1", LEASE_MS, T0).record
    fence = Fence("w1", 1, LEASE_MS)
    begun = redeem(leased, fence, (intent(),), (), T0).record
    voided = void(begun).record
    assert [lost.index for lost in voided.journal] == [0, 1]
    assert voided.due_at_ms == T0 + 1
    taken = lease(voided, "w2", LEASE_MS, T0 + 1).record
    with pytest.raises(StaleAttempt):
        redeem(taken, fence, (), (), T0 + 2)


@pytest.mark.parametrize(
    "record",
    [
        suspend(draft(resume=CALLS), (), T0).record,
        approve(begin(), "deny"),
        approve(begin(resume=ResumeSpec(resumer="langgraph"))),
        lease(suspend(draft(resume=CALLS), (), T0).record, "w1", LEASE_MS, T0).record,
    ],
)
def test_run_without_a_call_in_doubt_fails_and_can_be_retried(record: SuspensionRecord) -> None:
    change = void(record)
    assert (change.record.status, change.record.end and change.record.end.error) == (Status.FAILED, WHY)
    assert types_of(change)[-1] == "run_failed"


def test_call_of_a_client_is_asked_about() -> None:
    change = void(approve(begin(resume=POLL)))
    assert change.record.status is Status.RESUMED
    assert change.following is not None
    assert change.following.items[0].doubt is not None
    assert change.following.items[0].doubt.holder == "restore"
    with pytest.raises(AlreadyRedeemed):
        client_redeem(change.record, "i1", "k", T0 + 2)


def test_calls_of_a_client_are_no_longer_free_to_start() -> None:
    record = void(approve(begin(ask(), ask(1), resume=POLL))).record
    assert record.status is Status.RESUMING
    for item in record.items:
        with pytest.raises(AlreadyRedeemed, match="may have run"):
            client_redeem(record, item.item_id, "k", T0 + 2)


def test_permit_that_a_client_redeemed_stays_its_own() -> None:
    redeemed = client_redeem(approve(begin(resume=POLL)), "i1", "k", T0).record
    assert void(redeemed).record == redeemed
    assert client_redeem(redeemed, "i1", "k", T0 + 2).record == redeemed


def test_started_call_of_a_worker_stays_in_doubt() -> None:
    leased = lease(approve(begin()), "w1", LEASE_MS, T0).record
    begun = redeem(leased, Fence("w1", 1, LEASE_MS), (intent(),), (), T0).record
    voided = void(begun).record
    assert (voided.status, voided.journal, voided.due_at_ms) == (Status.RESUMING, begun.journal, T0 + 1)


def test_client_is_asked_about_the_one_call_without_a_result() -> None:
    redeemed = client_redeem(approve(begin(ask(), ask(1), resume=POLL)), "i1", "k", T0).record
    change = void(conclude(redeemed, "i1", "k", Report(success=True, at_ms=T0), T0).record)
    assert change.following is not None
    assert [item.call_id for item in change.following.items] == [redeemed.items[1].call_id]


def test_client_of_two_calls_in_doubt_marks_them_itself() -> None:
    redeemed = client_redeem(approve(begin(ask(), ask(1), resume=POLL)), "i1", "k", T0).record
    change = void(redeemed)
    assert (change.record.status, change.following) == (Status.RESUMING, None)
    assert [item.permit and item.permit.holder for item in change.record.items] == ["k", "restore"]


def test_idempotent_call_of_a_client_is_not_asked_about() -> None:
    once = ask()
    safe = once.model_copy(update={"tool": once.tool.model_copy(update={"idempotent": True})})
    change = void(approve(begin(safe, resume=POLL)))
    assert (change.record.status, change.following) == (Status.RESUMING, None)


def test_ended_suspension_stays() -> None:
    ended = begin().model_copy(update={"status": Status.CANCELLED})
    assert void(ended).record is ended


def test_permit_that_lapsed_is_not_in_doubt() -> None:
    record = approve(begin(ask(start_by_s=60), resume=POLL))
    assert void(record, T0 + 60_000).record == record


def test_restored_item_is_approved_by_no_fallback_before_it_is_seen() -> None:
    seen = see(
        begin(ask(timeout_s=60, unattended_approval=True, fallback={"action": "approve"})), "i1", person("anna"), T0
    ).record
    assert seen.items[0].seen_by is not None
    expired = expire(void(seen).record, T0 + 60_000).record
    assert expired.items[0].outcome is not None
    assert not expired.items[0].outcome.may_run
