"""Transitions with a fault, which the explorer must find."""

from typing import Any

from sayso.core.records.decisions import Actor, Permit
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions import deadlines, deciding, execution
from sayso.core.transitions.execution import Fence, WaitingWorker


def lease_twice(record: SuspensionRecord, holder: str, lease_ms: int, now_ms: int) -> Change:
    held = record.lease.model_copy(update={"until_ms": 0}) if record.lease else None
    return execution.lease(record.model_copy(update={"lease": held}), holder, lease_ms, now_ms)


def redeem_without_permit(record: SuspensionRecord, fence: Fence, intents: Any, events: Any, now_ms: int) -> Change:
    redeemed = execution.redeem(record, fence, intents, events, now_ms)
    return redeemed._replace(record=redeemed.record.model_copy(update={"items": record.items, "journal": ()}))


def checkpoint_with_stale_fence(record: SuspensionRecord, fence: Fence, *rest: Any) -> Change:
    assert record.lease is not None
    mine = Fence(record.lease.holder, record.lease.attempt, fence.lease_ms)
    return execution.checkpoint(record, mine, *rest)


def decide_late(record: SuspensionRecord, decision: Any, now_ms: int) -> Change:
    return deciding.decide(record, decision, min([now_ms, *(item.terms.deadline_at_ms - 1 for item in record.items)]))


def decide_twice(record: SuspensionRecord, decision: Any, now_ms: int) -> Change:
    if record.status is not Status.DECIDED or not record.items:
        return deciding.decide(record, decision, now_ms)
    opened = tuple(item.model_copy(update={"outcome": None}) for item in record.items)
    again = record.model_copy(update={"items": opened, "status": Status.PENDING})
    return deciding.decide(again, decision, now_ms)


def redrive_without_change(record: SuspensionRecord, now_ms: int) -> Change:
    return Change(record)


def settle_keeping_due_time(record: SuspensionRecord, *rest: Any) -> Change:
    change = execution.settle(record, *rest)
    return change._replace(record=change.record.model_copy(update={"due_at_ms": record.due_at_ms}))


def decide_without_ready(record: SuspensionRecord, *rest: Any) -> Change:
    return deciding.decide(record, *rest)._replace(ready=False)


def lease_without_doubt(record: SuspensionRecord, *rest: Any) -> Change:
    leased = execution.lease(record, *rest)
    unredeemed = tuple(item.model_copy(update={"permit": None}) for item in leased.record.items)
    return leased._replace(record=leased.record.model_copy(update={"journal": (), "items": unredeemed}))


def checkpoint_resuming_twice(record: SuspensionRecord, *rest: Any) -> Change:
    receipt = record.receipt.model_copy(update={"resumed_at_ms": None})
    return execution.checkpoint(record.model_copy(update={"receipt": receipt}), *rest)


def report_from_any_holder(record: SuspensionRecord, key: str, holder: str, *rest: Any) -> Change:
    items = tuple(
        item.model_copy(update={"doubt": item.doubt and item.doubt.model_copy(update={"holder": holder})})
        for item in record.items
    )
    return deciding.report(record.model_copy(update={"items": items}), key, holder, *rest)


def cancel_after_end(record: SuspensionRecord, *rest: Any) -> Change:
    if record.status is Status.RESUMED:
        record = record.model_copy(update={"status": Status.RESUMING})
    return deciding.cancel(record, *rest)


def hand_over_denied(change: Change, worker: WaitingWorker, now_ms: int) -> Change:
    handed = execution.hand_over(change, worker, now_ms)
    if not handed.handed_to:
        return handed
    permit = Permit(redeemed_at_ms=now_ms, attempt=1, holder=worker.holder)
    items = tuple(item.model_copy(update={"permit": permit}) for item in handed.record.items)
    return handed._replace(record=handed.record.model_copy(update={"items": items}))


def take_back_with_stale_fence(record: SuspensionRecord, fence: Fence, now_ms: int) -> Change:
    assert record.lease is not None
    return execution.take_back(record, Fence(record.lease.holder, record.lease.attempt, fence.lease_ms), now_ms)


def release_started_calls(record: SuspensionRecord, *rest: Any) -> Change:
    return execution.release(record.model_copy(update={"journal": ()}), *rest)


def keep_time_without_expiry(record: SuspensionRecord, now_ms: int) -> Change:
    return deadlines.remind(record, now_ms)


def keep_time_without_effect(record: SuspensionRecord, now_ms: int) -> Change:
    return deadlines.expire(record, now_ms)


def decide_undoable_for_long(record: SuspensionRecord, decision: Any, now_ms: int) -> Change:
    """Let a decision be undone after the deadline."""
    change = deciding.decide(record, decision, now_ms)
    item = change.record.items[0]
    if item.undoable is None:
        return change
    until_ms = item.terms.deadline_at_ms + 3_000
    late = item.model_copy(update={"undoable": item.undoable.model_copy(update={"until_ms": until_ms})})
    longer = change.record.with_item(late).model_copy(update={"due_at_ms": until_ms})
    return change._replace(record=longer)


def void_without_effect(record: SuspensionRecord, inactive: Any, now_ms: int) -> Change:
    change = deciding.void_decisions(record, inactive, now_ms)
    items = [
        new.model_copy(update={"decisions": deciding.list_made(old)})
        for old, new in zip(record.items, change.record.items, strict=True)
    ]
    return change._replace(record=change.record.model_copy(update={"items": tuple(items)}))


def void_without_trace(record: SuspensionRecord, inactive: Any, now_ms: int) -> Change:
    change = deciding.void_decisions(record, inactive, now_ms)
    items = tuple(one.model_copy(update={"voided": ()}) for one in change.record.items)
    return change._replace(record=change.record.model_copy(update={"items": items}))


def retract_of_others(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int) -> Change:
    """Take back everybody's decisions."""
    change = deciding.retract(record, item_id, by, now_ms)
    everybody = {decision.by.id for item in change.record.items for decision in item.decisions}
    return change._replace(record=deciding.void_decisions(change.record, everybody, now_ms).record)


def decide_with_voided(record: SuspensionRecord, decision: Any, now_ms: int) -> Change:
    """Count voided decisions for the quorum."""
    items = []
    for one in record.items:
        approve = max(1, one.terms.quorum.approve - len(one.voided))
        quorum = one.terms.quorum.model_copy(update={"approve": approve})
        items.append(one.model_copy(update={"terms": one.terms.model_copy(update={"quorum": quorum})}))
    lenient = record.model_copy(update={"items": tuple(items)})
    change = deciding.decide(lenient, decision, now_ms)
    if change.record is lenient:
        return Change(record)
    restored = [
        new.model_copy(update={"terms": old.terms}) for old, new in zip(record.items, change.record.items, strict=True)
    ]
    return change._replace(record=change.record.model_copy(update={"items": tuple(restored)}))
