"""Transitions for claims: a reviewer tells the others that they handle an item."""

from sayso.clock import iso_utc
from sayso.errors import Conflict
from sayso.records.decisions import Actor
from sayso.records.events import Event, EventType
from sayso.records.inquiries import CLAIM_MS, Claim, find_claim
from sayso.records.suspensions import Change, SuspensionRecord
from sayso.transitions.closing import describe_item, put_item
from sayso.transitions.deciding import find_item
from sayso.transitions.decision_checks import check_in_time, check_item_open, check_reviewer
from sayso.transitions.table import check_step


def claim(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int, lost_ms: int = 0) -> Change:
    """Claim an item for 15 minutes, or renew one's claim. Raises `Conflict` while another holds it, else as `decide`.

    A claim keeps nobody from deciding.
    """
    item = find_item(record, item_id)
    check_item_open(record, item)
    check_step(record, "claim")
    check_in_time(item, now_ms - lost_ms)
    by = check_reviewer(record, item, by)
    held = find_claim(item.claim, now_ms)
    if held is not None and held.by.id != by.id:
        until = iso_utc(held.until_ms)
        raise Conflict(f"{held.by.id} claimed this item until {until}. You may still decide it.", claimed_by=held.by.id)
    claimed = item.model_copy(update={"claim": Claim(by=by, at_ms=now_ms, until_ms=now_ms + CLAIM_MS)})
    data = {**describe_item(record, item), "by": by.model_dump(mode="json"), "until_ms": now_ms + CLAIM_MS}
    return put_item(record, claimed, (Event(EventType.ITEM_CLAIMED, data),), now_ms)


def release_claim(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int) -> Change:
    """Release one's own claim; without one, change nothing. Raises `Conflict` for another's claim."""
    item = find_item(record, item_id)
    check_item_open(record, item)
    check_step(record, "release_claim")
    held = find_claim(item.claim, now_ms)
    if held is None:
        return Change(record)
    if held.by.id != by.id:
        raise Conflict(f"{held.by.id} claimed this item, not you. Nothing was changed.", claimed_by=held.by.id)
    data = {**describe_item(record, item), "by": held.by.model_dump(mode="json")}
    released = item.model_copy(update={"claim": None})
    return put_item(record, released, (Event(EventType.CLAIM_RELEASED, data),), now_ms)
