"""Transitions of a suspension that is due, whose freeze has ended, or whose store lost its latest changes.

Frozen records are held for a while.
"""

from collections.abc import Sequence

from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.records.events import Event
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Change, Lease, Status, SuspensionRecord
from sayso.core.transitions.client_execution import client_redeem, lapse, mark_in_doubt
from sayso.core.transitions.closing import next_due
from sayso.core.transitions.deadlines import keep_time
from sayso.core.transitions.execution import Fence, describe_starts, give_up, lease, redeem, redrive
from sayso.core.transitions.freezing import check_start, find_held, hold, shift_deadlines, spare_lease, tools_to_start
from sayso.core.transitions.permits import may_start
from sayso.errors import Frozen


def tick(
    record: SuspensionRecord, freezes: Sequence[Freeze], now_ms: int, queued_since_ms: int | None = None
) -> Change:
    """Apply what is due: fallbacks, escalations and reminders, or a new place on the ready list."""
    if record.status is Status.PENDING:
        shifted = shift_deadlines(record, freezes, now_ms) if freezes else Change(record)
        held = find_held(shifted.record, freezes)
        kept = keep_time(shifted.record, now_ms, held)
        after = kept.record
        if held and after.status is Status.PENDING and (after.due_at_ms or 0) <= now_ms:
            after = hold(after, now_ms).record
        return kept._replace(record=after, events=shifted.events + kept.events)
    if record.status in (Status.DECIDED, Status.RESUMING):
        return _requeue(record, freezes, now_ms, queued_since_ms)
    return Change(record)


def wake(record: SuspensionRecord, freeze: Freeze, freezes: Sequence[Freeze], now_ms: int) -> Change:
    """Resume a suspension that `freeze` held: restart its deadlines, or make its run ready."""
    if not freeze.held(record):
        return Change(record)
    if record.status is Status.PENDING:
        shifted = shift_deadlines(record, freezes, now_ms)
        due_at_ms = next_due(shifted.record)
        if due_at_ms == shifted.record.due_at_ms:
            return shifted
        return shifted._replace(record=shifted.record.model_copy(update={"due_at_ms": due_at_ms}))
    if record.status is Status.DECIDED:
        return _requeue(record.model_copy(update={"due_at_ms": now_ms}), freezes, now_ms)
    return Change(record)


def _requeue(
    record: SuspensionRecord, freezes: Sequence[Freeze], now_ms: int, queued_since_ms: int | None = None
) -> Change:
    due = record.due_at_ms is not None and record.due_at_ms <= now_ms
    try:
        check_start(freezes, record, tools_to_start(record), now_ms)
    except Frozen as frozen:
        return hold(record, now_ms, frozen.message) if due else Change(record)
    if due and spare_lease(freezes, record, now_ms):
        return hold(record, now_ms)
    if record.resume.mode != "poll":
        return redrive(record, now_ms, queued_since_ms)
    shifted = shift_deadlines(record, freezes, now_ms) if freezes else Change(record)
    lapsed = lapse(shifted.record, now_ms)
    return Change(lapsed.record, shifted.events + lapsed.events)


_LONGEST = 2_000  # of the reason that a page shows


def void_starts(record: SuspensionRecord, following: SuspensionRecord, holder: str, why: str, now_ms: int) -> Change:
    """Return the change after which no permit and no lease of before counts, so that nothing runs twice by itself.

    A call that may have run is treated as one of a worker, or a client, that was lost after it had redeemed the permit:
    a person says what happened. A run of which no call is in doubt fails; an admin can retry it.

    `holder` stands for who may have used them. Open items say `why` they may have been decided before, and count as
    unseen, so that no fallback approves them unless a person sees this. `following` is the run's next suspension, if a
    client's call is in doubt.
    """
    if record.status is Status.PENDING:
        return _warn(record, why, now_ms)
    if record.status not in (Status.DECIDED, Status.RESUMING):
        return Change(record)
    startable = [item for item in record.items if _may_have_started(record, item, now_ms)]
    if record.resume.mode == "poll":
        return _void_of_client(record, following, holder, startable, now_ms)
    return _void_of_worker(record, holder, startable, why, now_ms)


def _warn(record: SuspensionRecord, why: str, now_ms: int) -> Change:
    def add(item: Item) -> Item:
        said = item.prompt.reason or ""
        reason = f"{why} {said}".strip()[:_LONGEST]
        update = {"prompt": item.prompt.model_copy(update={"reason": reason}), "undoable": None}
        unseen = {"seen_by": None, "seen_at_ms": None, "deliveries": tuple(map(_send_again, item.deliveries))}
        return item.model_copy(update={**update, **unseen})

    items = tuple(add(item) if item.open else item for item in record.items)
    record = record.model_copy(update={"items": items, "updated_at_ms": now_ms})
    return Change(record.model_copy(update={"due_at_ms": next_due(record)}))


def _send_again(delivery: CardDelivery) -> CardDelivery:
    return delivery.model_copy(update={"state": DeliveryState.QUEUED, "tries": 0, "next_try_at_ms": None})


def _may_have_started(record: SuspensionRecord, item: Item, now_ms: int) -> bool:
    return may_start(item) and not record.stops_calls and now_ms < item.start_by_ms


def _void_of_worker(record: SuspensionRecord, holder: str, startable: list[Item], why: str, now_ms: int) -> Change:
    events: tuple[Event, ...] = ()
    if record.status is Status.DECIDED:
        record, events = lease(record, holder, 0, now_ms)[:2]
    held = record.lease or Lease(holder=holder, attempt=1, until_ms=now_ms)
    fence = Fence(held.holder, held.attempt, 0)
    known = record.resume.resumer == "runner" or (record.resume.resumer == "calls" and record.state is None)
    intents = describe_starts(record, startable, fence, now_ms) if known else ()
    if not intents and all(intent.result is not None for intent in record.journal):
        failed = give_up(record, fence, why, (), now_ms)
        return failed._replace(events=events + failed.events)
    voided = redeem(record, fence, intents, (), now_ms)
    return voided._replace(events=events + voided.events)


def _void_of_client(
    record: SuspensionRecord, following: SuspensionRecord, holder: str, startable: list[Item], now_ms: int
) -> Change:
    events: tuple[Event, ...] = ()
    for item in startable:
        redeemed = client_redeem(record, item.item_id, holder, now_ms)
        record, events = redeemed.record, events + redeemed.events
    unknown = [item for item in record.items if item.permit is not None and item.permit.report is None]
    if len(unknown) != 1 or len(startable) != 1 or unknown[0].tool.idempotent:
        return Change(record, events)  # its client marks it in doubt, or runs it again under the same key
    doubted = mark_in_doubt(record, unknown[0].item_id, following, now_ms)
    return doubted._replace(events=events + doubted.events)
