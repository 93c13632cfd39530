"""The state shown for an item and for a run: the worst that is known."""

from enum import StrEnum

from sayso.core.records.items import Item
from sayso.core.records.suspensions import RunStatus, Status, SuspensionRecord
from sayso.core.transitions.permits import Choice, read_choice


class ItemState(StrEnum):
    """The state of an item: open, decided, or what went wrong with its call."""

    OPEN = "open"
    APPROVED = "approved"
    ANSWERED = "answered"
    DENIED = "denied"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"
    """Approved, but the call did not start before the run ended."""
    IN_DOUBT = "in_doubt"
    """The call was started, and its result is unknown."""
    FAILED = "failed"
    """The call failed, or the run failed before it."""


class RunState(StrEnum):
    """A run's status, or `call_failed` for an ended run with a failed call."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    DEGRADED = "degraded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CALL_FAILED = "call_failed"


_ENDED_ITSELF = (RunStatus.COMPLETED, RunStatus.DEGRADED)
_OVER = (Status.RESUMED, Status.CANCELLED, Status.FAILED)


def find_item_state(record: SuspensionRecord, item: Item) -> ItemState:
    """Return the state of an item of the record."""
    if item.outcome is None:
        return ItemState.CANCELLED if record.status in (Status.CANCELLED, Status.FAILED) else ItemState.OPEN
    verdict = ItemState(item.outcome.verdict.value)
    if has_failed(item):
        return ItemState.FAILED
    if not item.outcome.may_run or record.status not in _OVER:
        return verdict
    if item.permit is not None:
        is_known = item.permit.success is not None or item.permit.report is not None
        return verdict if is_known else ItemState.IN_DOUBT
    if record.status in (Status.CANCELLED, Status.FAILED):
        return ItemState.CANCELLED if record.status is Status.CANCELLED else ItemState.FAILED
    left_out = record.end is not None and item.doubt is None and (record.resume.mode == "poll" or record.stops_calls)
    return ItemState.NOT_RUN if left_out else verdict


def find_run_state(status: RunStatus, failed_calls: int) -> RunState:
    """Return the state of a run with this status and number of failed calls."""
    if failed_calls and status in _ENDED_ITSELF:
        return RunState.CALL_FAILED
    return RunState(status.value)


def count_failed(record: SuspensionRecord) -> int:
    """Return how many approved calls failed in this suspension and the ones before it."""
    return record.failed_calls + sum(map(has_failed, record.items))


def has_failed(item: Item) -> bool:
    """Whether the item's call failed, or was given up in doubt."""
    permit = item.permit
    if permit is not None:
        return permit.success is False or (permit.report is not None and not permit.report.success)
    if item.doubt is None or item.outcome is None or not item.outcome.may_run:
        return False
    answer = read_choice(item.outcome.value)
    reported = answer.result if isinstance(answer.result, dict) else {}
    return answer.choice is Choice.FAIL or (answer.choice is Choice.REPORTED and reported.get("success") is False)
