"""Guards of transitions that no other test covers."""

from collections.abc import Callable
from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, ConfirmRequest, ForwardRequest, Verdict
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Doubt, Inquiry, PresetOutcome
from sayso.core.records.previews import Preview, PreviewRequest
from sayso.core.records.proofs import Invitation
from sayso.core.records.suspensions import Change, Lease, RunStatus, Status, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.core.records.undoing import Reversal
from sayso.core.transitions.deadlines import escalate, expire, remind, see
from sayso.core.transitions.deciding import ask_again, cancel, decide, extend, report, retract, suspend, void_decisions
from sayso.core.transitions.decision_checks import describe_outcome
from sayso.core.transitions.deliveries import forward, move_cards, record_deliveries
from sayso.core.transitions.execution import (
    MAX_TRIES,
    Fence,
    checkpoint,
    give_up,
    lease,
    note_results,
    postpone,
    redeem,
    redrive,
    release,
    renew,
    return_permits,
    revive,
    settle,
    suspend_again,
)
from sayso.core.transitions.freezing import hold, shift_deadlines
from sayso.core.transitions.inquiring import (
    answer_inquiry,
    ask_requester,
    claim,
    confirm,
    release_claim,
    request_preview,
    store_preview,
    write_note,
)
from sayso.core.transitions.legal import LEGAL, check_step
from sayso.core.transitions.outsiders import enter_code, invite, revoke_invitation, send_code
from sayso.core.transitions.permits import approved_args, put_in_doubt, recover_start
from sayso.core.transitions.quorum import take_effect
from sayso.core.transitions.second_look import Opinion, Seen, Undone, note_undone, take_second_look
from sayso.errors import AlreadyDecided, IllegalTransition, StaleAttempt
from tests.sayso.core.transitions.test_execution import DONE, FENCE, STATE, decided, leased
from tests.sayso.samples import T0, ask, draft, intent, pending, person, types_of, word

RESULT = ToolResult(call_id="call_0", tool_name="refund", success=True, output="done")
FROZEN = Freeze(id="f", scope="all", reason="odd", by="root", at_ms=T0)
CALL = Reversal(run_id="run_1", suspension_id="sus_1", tool="refund", call_id="c", index=0, at_ms=T0)
SEEN = Seen(seq=2, tool="refund", rule_id="small", verdict="allowed", reviewers=(), deciders=())
CONFIRMED = ConfirmRequest(action="confirm", digest="0" * 64)
FORWARDED = ForwardRequest(to="ben", digest="0" * 64)
PREVIEW = Preview(content="pays", digest="p" * 64, at_ms=T0)
VERBS: dict[str, Callable[[SuspensionRecord], Change]] = {
    "decide": lambda record: decide(record, word(record), T0),
    "ask_again": lambda record: ask_again(record, word(record), ask(), T0),
    "confirm": lambda record: confirm(record, "i1", CONFIRMED, "con_1", person("mara"), T0),
    "take_effect": lambda record: take_effect(record, T0),
    "void_decisions": lambda record: void_decisions(record, ("ada",), T0),
    "retract": lambda record: retract(record, "i1", person("ada"), T0),
    "see": lambda record: see(record, "i1", person("ada"), T0),
    "record_deliveries": lambda record: record_deliveries(record, (), T0),
    "move_cards": lambda record: move_cards(record, {}, T0),
    "claim": lambda record: claim(record, "i1", person("ada"), T0),
    "release_claim": lambda record: release_claim(record, "i1", person("ada"), T0),
    "forward": lambda record: forward(record, "i1", FORWARDED, "fwd_1", (), person("ada"), T0),
    "ask_requester": lambda record: ask_requester(record, "i1", "inq_1", "Why?", person("ada"), T0),
    "answer_inquiry": lambda record: answer_inquiry(inquired(record), "i1", "inq_1", "So.", person("bot"), T0),
    "write_note": lambda record: write_note(record, "note_1", "Stop soon.", person("ada"), T0),
    "invite": lambda record: invite(record, "i1", invitation_to(record), person("ada"), T0),
    "revoke_invitation": lambda record: revoke_invitation(invited(record), "i1", "inv_1", person("ada"), T0),
    "send_code": lambda record: send_code(invited(record), "i1", "0" * 64, "1" * 64, T0),
    "enter_code": lambda record: enter_code(invited(record), "i1", "0" * 64, "1" * 64, "2" * 64, T0),
    "request_preview": lambda record: request_preview(record, "i1", None, person("ada"), T0),
    "store_preview": lambda record: store_preview(awaited(record), "i1", PREVIEW, T0),
    "note_undone": lambda record: note_undone(record, Undone(CALL, True, None, person("ada"), "sus_2"), T0),
    "take_second_look": lambda record: take_second_look(record, SEEN, Opinion(agrees=True), person("ada"), T0),
    "extend": lambda record: extend(record, "i1", T0 + 400_000, person("ada"), T0),
    "expire": lambda record: expire(record, T0),
    "escalate": lambda record: escalate(record, T0),
    "remind": lambda record: remind(record, T0),
    "report": lambda record: report(record, "key", "w0", RESULT, T0),
    "cancel": lambda record: cancel(record, person("ada"), None, T0),
    "shift_deadlines": lambda record: shift_deadlines(record, (), T0),
    "hold": lambda record: hold(record, T0),
    "lease": lambda record: lease(record, "w1", 30_000, T0),
    "renew": lambda record: renew(record, FENCE, T0),
    "redeem": lambda record: redeem(record, FENCE, (intent(None),), (), T0),
    "return_permits": lambda record: return_permits(record, FENCE, {0}, T0),
    "checkpoint": lambda record: checkpoint(record, FENCE, STATE, (), T0),
    "note_results": lambda record: note_results(record, FENCE, {0: RESULT}, T0),
    "postpone": lambda record: postpone(record, FENCE, "why", T0),
    "release": lambda record: release(record, FENCE, "why", T0),
    "redrive": lambda record: redrive(record, T0),
    "suspend_again": lambda record: suspend_again(record, FENCE, draft(id="sus_2"), (ask(),), STATE, (), T0),
    "settle": lambda record: settle(record, FENCE, DONE, (), T0),
    "give_up": lambda record: give_up(record, FENCE, "why", (), T0),
    "revive": lambda record: revive(record, person("ada"), T0),
    "recover_start": lambda record: recover_start(record, started(record), T0),
}
REPEATED = {("cancel", Status.CANCELLED), ("settle", Status.RESUMED)}
"""Steps that may be repeated."""

ILLEGAL = [
    (verb, status)
    for verb in VERBS
    for status in Status
    if status not in LEGAL[verb].sources and (verb, status) not in REPEATED
]


def started(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record with a started call."""
    return record.model_copy(update={"journal": (intent(None),)})


def awaited(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record with a preview of its first item that a worker was asked for."""
    item = record.items[0].model_copy(update={"preview_request": PreviewRequest(at_ms=T0)})
    return record.model_copy(update={"items": (item,)})


def invitation_to(record: SuspensionRecord) -> Invitation:
    """Return an invitation to the first item."""
    return Invitation(
        id="inv_1",
        address="jane@partner.example",
        by="ada",
        at_ms=T0,
        until_ms=T0 + 3_600_000,
        digest=record.items[0].digest,
        channel="mail",
        nonce="n",
        token_hash="0" * 64,
    )


def invited(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record with an invitation to its first item."""
    item = record.items[0].model_copy(update={"invitations": (invitation_to(record),)})
    return record.model_copy(update={"items": (item,)})


def inquired(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record with an open inquiry about its first item."""
    inquiry = Inquiry(id="inq_1", by=person("ada"), text="Why?", at_ms=T0)
    return record.model_copy(update={"items": (record.items[0].model_copy(update={"inquiries": (inquiry,)}),)})


def revocations(status: Status) -> SuspensionRecord:
    """A suspension that stands there with an item still open, so that nothing else refuses anything."""
    held = Lease(holder="w1", attempt=1, until_ms=T0 + 30_000)
    return pending(ask(extend_by_s=600)).model_copy(update={"status": status, "lease": held})


@pytest.mark.parametrize(("verb", "status"), ILLEGAL)
def test_a_step_that_is_not_in_the_table_is_refused(verb: str, status: Status) -> None:
    with pytest.raises(IllegalTransition):
        VERBS[verb](revocations(status))


def test_every_row_of_the_table_is_tried() -> None:
    owners = {"client_redeem", "conclude", "lapse", "mark_in_doubt", "supersede"}  # they have tests of their own
    assert set(VERBS) | {"suspend"} | owners == set(LEGAL)


def test_only_open_items_have_a_deadline_that_counts() -> None:
    record = pending(ask(0, timeout_s=60), ask(1, timeout_s=90))
    assert decide(record, word(record), T0).record.deadline_at_ms == T0 + 90_000


def test_a_run_that_a_worker_drives_is_running() -> None:
    assert leased().run_status is RunStatus.RUNNING
    assert decided().run_status is RunStatus.SUSPENDED


def test_suspend_with_presets_only_is_decided() -> None:
    ruled = ask().model_copy(update={"preset": PresetOutcome(verdict=Verdict.DENIED, by=person("ada"))})
    change = suspend(draft(), (ruled,), T0)
    assert change.record.status is Status.DECIDED
    assert types_of(change) == ["run_paused", "decided"]
    assert change.ready


def test_an_item_that_waits_says_so() -> None:
    assert describe_outcome(pending().items[0]) == "This item is still open."


def test_describe_outcome_ends_in_one_full_stop() -> None:
    described = describe_outcome(decided(message="Too old.").items[0])
    assert described.endswith(", saying: Too old.")


# Words


def test_the_same_decision_without_a_key_is_known_by_its_id() -> None:
    record = pending(ask(quorum={"approve": 2, "deny": 1}))
    once = decide(record, word(record), T0).record
    assert decide(once, word(record), T0).record is once


def test_deny_needs_no_choice() -> None:
    offered = pending().items[0].model_copy(update={"choices": (1, 2)})
    record = pending().model_copy(update={"items": (offered,)})
    assert decide(record, word(record, "deny"), T0).record.status is Status.DECIDED


def test_only_denials_count_towards_a_denial() -> None:
    record = pending(ask(quorum={"approve": 2, "deny": 2}))
    record = decide(record, word(record), T0).record
    assert decide(record, word(record, "deny", by="ben"), T0).record.status is Status.PENDING


def test_decide_on_decided_item() -> None:
    record = pending(ask(0, extend_by_s=600), ask(1))
    record = decide(record, word(record), T0).record
    again = word(record, "deny", by="ben")
    with pytest.raises(AlreadyDecided):
        extend(record, "i1", T0 + 400_000, person("ben"), T0)
    with pytest.raises(AlreadyDecided):
        ask_again(record, again, ask(), T0)


# A late result


def in_doubt(*more: Any) -> SuspensionRecord:
    doubt = Doubt(begun_at_ms=T0, holder="w0", attempt=1, idempotency_key="key")
    call = ToolCall(call_id="call_0", index=0, name="refund", args={})
    return pending(put_in_doubt(call, "d" * 64, doubt), *more)


def test_report_of_the_same_worker_closes_the_doubt() -> None:
    change = report(in_doubt(), "key", "w0", RESULT, T0)
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.by) == (Verdict.ANSWERED, Actor(id="w0", kind=ActorKind.WORKER, channel="worker"))
    assert types_of(change) == ["result_reported", "decided"]


@pytest.mark.parametrize(("key", "holder"), [("other", "w0"), ("key", "w9")])
def test_report_of_another_worker_changes_nothing(key: str, holder: str) -> None:
    record = in_doubt()
    assert report(record, key, holder, RESULT, T0).record is record


def test_report_changes_only_its_open_item() -> None:
    record = in_doubt(ask(1))
    skipped = decide(record, word(record, "value", value={"choice": "skip"}), T0).record
    assert report(skipped, "key", "w0", RESULT, T0).record is skipped
    other = pending(ask())
    assert report(other, "key", "w0", RESULT, T0).record is other


# Time


def test_held_items_are_not_escalated_or_reminded() -> None:
    record = pending(ask(escalate=({"after_s": 1, "reviewers": ("ben",)},), remind_after_s=(1,), reviewers=("ada",)))
    held = frozenset({"i1"})
    assert escalate(record, T0 + 2_000, held).record is record
    assert remind(record, T0 + 2_000, held).record is record


def test_escalate_applies_all_due_steps() -> None:
    steps = ({"after_s": 1, "reviewers": ("ben",)}, {"after_s": 2, "reviewers": ("cleo",)})
    record = pending(ask(0), ask(1, reviewers=("ada",), escalate=steps))
    item = escalate(record, T0 + 3_000).record.items[1]
    assert item.terms.reviewers == ("ada", "ben", "cleo")


def test_remind_skips_decided_items() -> None:
    record = pending(ask(0, remind_after_s=(1,)), ask(1))
    record = decide(record, word(record), T0).record
    assert remind(record, T0 + 2_000).record is record


def test_shift_deadlines_keeps_a_decided_runs_due_time() -> None:
    record = decided()
    change = shift_deadlines(
        record, [FROZEN.model_copy(update={"unfrozen_at_ms": T0 + 500, "unfrozen_by": "root"})], T0 + 500
    )
    assert change.record.due_at_ms == record.due_at_ms
    assert types_of(change) == ["deadlines_moved"]


# Leases and permits


@pytest.mark.parametrize("fence", [Fence("w2", 1, 30_000), Fence("w1", 2, 30_000), Fence("w1", 0, 30_000)])
def test_a_step_in_another_name_or_of_another_attempt_is_refused(fence: Fence) -> None:
    with pytest.raises(StaleAttempt):
        renew(leased(), fence, T0)


def test_settle_again_by_the_same_worker() -> None:
    settled = settle(leased(), FENCE, DONE, (), T0).record
    assert settle(settled, FENCE, DONE, (), T0).record is settled
    with pytest.raises(StaleAttempt):
        settle(settled, Fence("w2", 1, 30_000), DONE, (), T0)


def test_approved_args_of_an_open_item() -> None:
    record = revocations(Status.RESUMING)
    with pytest.raises(IllegalTransition, match="is not approved"):
        redeem(record, FENCE, (intent(),), (), T0)
    assert approved_args(record.items[0]) == record.items[0].tool.args


@pytest.mark.parametrize(
    ("status", "tries", "after"),
    [
        (Status.RESUMING, MAX_TRIES, Status.FAILED),
        (Status.RESUMING, MAX_TRIES - 1, Status.RESUMING),
        (Status.DECIDED, MAX_TRIES, Status.DECIDED),
    ],
)
def test_only_a_run_whose_workers_were_lost_too_often_is_given_up(status: Status, tries: int, after: Status) -> None:
    record = leased() if status is Status.RESUMING else decided()
    record = record.model_copy(update={"receipt": record.receipt.model_copy(update={"tries": tries})})
    assert redrive(record, T0 + 60_000).record.status is after


# A batch whose calls end one after the other


def begun() -> SuspensionRecord:
    """Return a run with two calls under way."""
    return redeem(leased(), FENCE, (intent(None, 0), intent(None, 1)), (), T0).record


def test_note_results_until_the_batch_is_saved() -> None:
    noted = note_results(begun(), FENCE, {1: RESULT}, T0 + 5).record
    assert [one.result for one in noted.journal] == [None, RESULT]
    assert noted.due_at_ms == T0 + 5 + FENCE.lease_ms
    assert checkpoint(noted, FENCE, STATE, (), T0 + 6).record.journal == ()


def test_a_lost_worker_notes_nothing() -> None:
    with pytest.raises(StaleAttempt):
        note_results(begun(), Fence("w1", 0, 30_000), {1: RESULT}, T0)


def test_cancel_client_run_lists_unfinished_calls() -> None:
    noted = note_results(begun(), FENCE, {1: RESULT}, T0).record
    (event,) = cancel(noted, person("ada"), None, T0).events
    assert event.data["calls_in_flight"] == ["call_0"]


@pytest.mark.parametrize(("verb", "taken"), [("checkpoint", "resuming"), ("lease", "decided or resuming")])
def test_check_step_names_the_needed_status(verb: str, taken: str) -> None:
    with pytest.raises(IllegalTransition) as refused:
        check_step(pending(), verb)
    assert refused.value.message == f"Cannot {verb}: the suspension is pending, not {taken}. Read it again."
