"""Starts that the store lost when it went back, put back from what a process or a client knows of them."""

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Permit, Report
from sayso.core.records.events import Event, EventType
from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import Change, Lease, Status, SuspensionRecord
from sayso.core.transitions.client_execution import conclude
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.legal import check_step


def recover_start(record: SuspensionRecord, started: SuspensionRecord, now_ms: int) -> Change:
    """Return the record with the permits and the journal of `started`, which it has lost; its calls are in doubt then.

    Raises `IllegalTransition` where the suspension is open again or has ended.
    """
    check_step(record, "recover_start")
    lost = [item for item in started.items if item.permit and not find_item(record, item.item_id).permit]
    journal = tuple(intent for intent in started.journal if intent not in record.journal)
    if not lost and not journal:
        return Change(record)
    kept = {item.item_id: item for item in lost}
    update = {
        "items": tuple(kept.get(item.item_id, item) for item in record.items),
        "journal": (*record.journal, *journal),
        "status": Status.RESUMING,
        "lease": started.lease,
        "updated_at_ms": now_ms,
        "due_at_ms": started.due_at_ms or now_ms,
    }
    events = [
        _describe_start(item.item_id, item.call_id, item.permit.holder, item.permit.attempt)
        for item in lost
        if item.permit is not None
    ]
    return Change(record.model_copy(update=update), tuple(events))


def is_lost(record: SuspensionRecord, item_id: str, freezes: tuple[Freeze, ...]) -> bool:
    """Whether the store may have lost that the permit of an approved call was redeemed."""
    item = find_item(record, item_id)
    if item.permit is not None or item.outcome is None or not item.outcome.may_run:
        return False
    return any(freeze.lost is not None and item.outcome.at_ms <= freeze.lost.to_ms for freeze in freezes)


def conclude_lost(record: SuspensionRecord, item_id: str, key: str | None, reported: Report, now_ms: int) -> Change:
    """Record the result of a call whose redeemed permit the store lost, as its client reports it."""
    check_step(record, "recover_start")
    item = find_item(record, item_id)
    permit = Permit(redeemed_at_ms=now_ms, attempt=1, holder=key or record.run.owner, report_by_ms=now_ms)
    lease = Lease(holder=permit.holder, attempt=1, until_ms=now_ms)
    update = {"status": Status.RESUMING, "lease": record.lease or lease}
    redeemed = record.with_item(item.model_copy(update={"permit": permit})).model_copy(update=update)
    concluded = conclude(redeemed, item_id, key, reported, now_ms)
    event = _describe_start(item_id, item.call_id, permit.holder, permit.attempt)
    return concluded._replace(events=(event, *concluded.events))


def _describe_start(item_id: str, call_id: str, holder: str, attempt: int) -> Event:
    data: JsonObject = {"item_id": item_id, "call_id": call_id, "holder": holder, "attempt": attempt, "recovered": True}
    return Event(EventType.PERMIT_REDEEMED, data)
