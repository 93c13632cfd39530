"""A permit is redeemed once, and given back for a call that did not run."""

import pytest

from sayso.core.records.decisions import Outcome
from sayso.core.records.freezes import Freeze, Loss
from sayso.core.records.items import Doubt, Drill
from sayso.core.records.suspensions import Status
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.execution import Fence, lease, postpone, redeem, return_permits
from sayso.core.transitions.permits import (
    approved_args,
    check_choice,
    is_lost,
    may_start,
    put_in_doubt,
    recover_start,
)
from sayso.errors import IllegalTransition, InvalidInput, SaysoError
from tests.sayso.core.transitions.test_execution import FENCE, decided, leased
from tests.sayso.samples import T0, ask, intent, pending, types_of, word


def test_redeem_of_allowed_call_needs_no_permit() -> None:
    change = redeem(leased(), FENCE, (intent(None),), (), T0)
    assert [one.item_id for one in change.record.journal] == [None]
    assert "permit_redeemed" not in types_of(change)


def test_redeem_again_keeps_one_journal_entry() -> None:
    once = redeem(leased(), FENCE, (intent(None, 0), intent(None, 1)), (), T0).record
    again = redeem(once, FENCE, (intent(None, 1),), (), T0).record
    assert [one.index for one in again.journal] == [0, 1]


def test_approved_args_without_edit() -> None:
    item = decided().items[0]
    assert isinstance(item.outcome, Outcome)
    assert item.outcome.args is None
    assert approved_args(item) == item.tool.args


def test_final_error_waits_until_no_call_is_in_doubt() -> None:
    spent = redeem(leased(), FENCE, (intent(),), (), T0).record
    doubted = postpone(spent, FENCE, "No such node.", T0, is_final=True).record
    assert (doubted.status, doubted.items[0].permit is None) == (Status.RESUMING, False)
    returned = return_permits(spent, FENCE, {one.index for one in spent.journal}, T0).record
    ended = postpone(returned, FENCE, "No such node.", T0, is_final=True).record
    assert (ended.status, ended.end and ended.end.error) == (Status.FAILED, "No such node.")
    assert all(item.permit is None for item in ended.items)


def test_return_permits_of_unused_calls_only() -> None:
    record = pending(ask(0), ask(1))
    for item_id in ("i1", "i2"):
        record = decide(record, word(record, item_id=item_id), T0).record
    taken = lease(record, "w1", 30_000, T0).record
    spent = redeem(taken, FENCE, (intent("i1", 0), intent("i2", 1)), (), T0).record
    change = return_permits(spent, FENCE, {0}, T0)
    assert [item.permit is None for item in change.record.items] == [True, False]
    assert [one.index for one in change.record.journal] == [1]
    assert [event.data["item_id"] for event in change.events] == ["i1"]


def test_redeem_again_after_an_attempt_in_vain() -> None:
    spent = redeem(leased(), FENCE, (intent(),), (), T0).record
    taken = lease(spent, "w2", 30_000, T0 + 30_000).record
    fence = Fence("w2", 2, 30_000)
    for attempt in (None, 2, 7):
        with pytest.raises(IllegalTransition, match="already redeemed"):
            redeem(taken, fence, (intent().model_copy(update={"in_vain": attempt}),), (), T0 + 30_000)
    again = redeem(taken, fence, (intent().model_copy(update={"in_vain": 1}),), (), T0 + 30_000).record
    assert again.items[0].permit is not None
    assert again.items[0].permit.attempt == 2
    late = taken.items[0].start_by_ms
    with pytest.raises(SaysoError, match="ended at"):
        redeem(taken, fence, (intent().model_copy(update={"in_vain": 1}),), (), late)


def test_permit_of_a_drill_is_void() -> None:
    drill = Drill(template="unknown-recipient", signs=("Nobody knows the recipient.",), planted_by="root")
    record = pending(ask().model_copy(update={"drill": drill}))
    taken = lease(decide(record, word(record), T0).record, "w1", 30_000, T0).record
    assert not may_start(taken.items[0])
    with pytest.raises(IllegalTransition, match="is a drill"):
        redeem(taken, FENCE, (intent(),), (), T0)


@pytest.mark.parametrize(
    ("by_client", "words"),
    [
        (False, ("by worker w1 (attempt 2)", "Its worker was lost")),
        (True, ("by its client (key w1)", "Its client did not")),
    ],
)
def test_item_of_a_call_in_doubt_says_who_started_it(by_client: bool, words: tuple[str, str]) -> None:
    doubt = Doubt(begun_at_ms=T0, holder="w1", attempt=2, idempotency_key="k")
    prompt = put_in_doubt(
        ToolCall(call_id="c1", index=0, name="refund", args={}), "d", doubt, by_client=by_client
    ).prompt
    assert words[0] in (prompt.body or "")
    assert words[1] in (prompt.reason or "")


def test_result_of_a_call_in_doubt_is_given_with_skip_alone() -> None:
    check_choice({"choice": "skip", "result": "done"})
    check_choice({"choice": "run_again"})
    with pytest.raises(InvalidInput, match="only with skip"):
        check_choice({"choice": "run_again", "result": "done"})


def test_start_that_the_store_lost_is_in_its_record_again() -> None:
    before = decided()
    started = redeem(lease(before, "w1", 30_000, T0).record, FENCE, (intent(),), (), T0 + 5).record
    change = recover_start(before, started, T0 + 9)
    assert (change.record.status, change.record.lease) == (Status.RESUMING, started.lease)
    assert (change.record.items, change.record.journal) == (started.items, started.journal)
    assert (change.record.updated_at_ms, change.record.due_at_ms) == (T0 + 9, started.due_at_ms)
    assert [event.data["recovered"] for event in change.events] == [True]
    assert types_of(change) == ["permit_redeemed"]
    assert recover_start(change.record, started, T0 + 10).record is change.record


def test_start_of_an_allowed_call_that_the_store_lost_is_in_its_journal_again() -> None:
    before = leased()
    started = redeem(before, FENCE, (intent(None),), (), T0).record
    change = recover_start(before, started, T0)
    assert (change.record.journal, change.events) == (started.journal, ())
    assert recover_start(change.record, started, T0).record is change.record


def test_permit_is_lost_only_of_a_call_approved_in_a_lost_time() -> None:
    (item,), loss = decided().items, Loss(commits=1, from_ms=0, to_ms=T0)
    lost = Freeze(id="frz_1", scope="all", by="desk", at_ms=T0, lost=loss)
    other = lost.model_copy(update={"lost": None})
    later = lost.model_copy(update={"lost": loss.model_copy(update={"to_ms": T0 - 1})})
    assert is_lost(item, (other, lost))
    assert not is_lost(item, (other,))
    assert not is_lost(item, (later,))
    spent = redeem(leased(), FENCE, (intent(),), (), T0).record.items[0]
    denied = decide(pending(), word(pending(), action="deny"), T0).record.items[0]
    for settled in (spent, denied, pending().items[0]):
        assert not is_lost(settled, (lost,))
