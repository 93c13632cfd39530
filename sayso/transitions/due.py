"""Look at a suspension because its time has come, or because what held it was lifted: do what its moments call for.

Plain functions on frozen records. Nothing is done to what is frozen; it is looked at again in a while.
"""

from collections.abc import Sequence

from sayso.errors import Frozen
from sayso.records.freezes import Freeze
from sayso.records.suspensions import Change, Status, SuspensionRecord
from sayso.transitions.client_execution import lapse
from sayso.transitions.closing import next_due
from sayso.transitions.execution import redrive
from sayso.transitions.freezing import check_start, find_held, hold, shift_deadlines, spare_lease, tools_to_start
from sayso.transitions.timing import keep_time


def look(
    record: SuspensionRecord, freezes: Sequence[Freeze], now_ms: int, queued_since_ms: int | None = None
) -> Change:
    """Let fallbacks decide, people be called in and reminded, or put a decided run before a worker again.

    `queued_since_ms` is when the first of those that wait for a worker was put before them, if one waits.
    """
    if record.status is Status.PENDING:
        return _keep_time(record, freezes, now_ms)
    if record.status in (Status.DECIDED, Status.RESUMING):
        return _bring_back(record, freezes, now_ms, queued_since_ms)
    return Change(record)


def wake(record: SuspensionRecord, freeze: Freeze, freezes: Sequence[Freeze], now_ms: int) -> Change:
    """Let a suspension go on at once that `freeze` held before it was lifted: its time begins again, or its run.

    Its moments stand on the schedule again as its terms say, however late the look at it was put off to.
    """
    if not freeze.held(record):
        return Change(record)
    if record.status is Status.PENDING:
        shifted = shift_deadlines(record, freezes, now_ms)
        due_at_ms = next_due(shifted.record)
        if due_at_ms == shifted.record.due_at_ms:
            return shifted
        return shifted._replace(record=shifted.record.model_copy(update={"due_at_ms": due_at_ms}))
    if record.status is Status.DECIDED:
        return _bring_back(record.model_copy(update={"due_at_ms": now_ms}), freezes, now_ms)
    return Change(record)


def _keep_time(record: SuspensionRecord, freezes: Sequence[Freeze], now_ms: int) -> Change:
    shifted = shift_deadlines(record, freezes, now_ms) if freezes else Change(record)
    held = find_held(shifted.record, freezes)
    kept = keep_time(shifted.record, now_ms, held)
    after = kept.record
    if held and after.status is Status.PENDING and (after.due_at_ms or 0) <= now_ms:
        after = hold(after, now_ms).record
    return Change(after, shifted.events + kept.events, ready=kept.ready)


def _bring_back(
    record: SuspensionRecord, freezes: Sequence[Freeze], now_ms: int, queued_since_ms: int | None = None
) -> Change:
    """Put a run before a worker again, or end it when leave that whoever asked had was not used in time."""
    due = record.due_at_ms is not None and record.due_at_ms <= now_ms
    try:
        check_start(freezes, record, tools_to_start(record), now_ms)
    except Frozen as halt:
        return hold(record, now_ms, halt.message) if due else Change(record)
    if due and spare_lease(freezes, record, now_ms):
        return hold(record, now_ms)
    if record.resume.mode != "poll":
        return redrive(record, now_ms, queued_since_ms)
    shifted = shift_deadlines(record, freezes, now_ms) if freezes else Change(record)
    lapsed = lapse(shifted.record, now_ms)
    return Change(lapsed.record, shifted.events + lapsed.events)
