"""Transitions of a suspension that is due, or whose freeze has ended. Frozen records are held for a while."""

from collections.abc import Sequence

from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.client_execution import lapse
from sayso.core.transitions.closing import next_due
from sayso.core.transitions.deadlines import keep_time
from sayso.core.transitions.execution import redrive
from sayso.core.transitions.freezing import check_start, find_held, hold, shift_deadlines, spare_lease, tools_to_start
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
