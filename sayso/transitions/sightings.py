"""Transitions for sightings: a reviewer has seen an item, so its fallback may approve it.

An item is seen when a reviewer who may decide it opens it or decides on it.
"""

from sayso.records.decisions import Actor, ActorKind
from sayso.records.events import Event, EventType
from sayso.records.items import Item
from sayso.records.suspensions import Change, SuspensionRecord
from sayso.records.terms import FallbackAction
from sayso.transitions.closing import put_item
from sayso.transitions.decision_checks import is_named, keep_groups
from sayso.transitions.table import check_step


def needs_sight(record: SuspensionRecord, item: Item) -> bool:
    """Return whether the fallback would approve this open item, and no reviewer has seen it.

    Items of headless runs, which have no time to decide, need no reviewer.
    """
    if not item.open or item.terms.fallback.action is not FallbackAction.APPROVE:
        return False
    timed = item.terms.deadline_at_ms > record.created_at_ms + item.held_ms
    return timed and item.seen_by is None and not any(one.by.kind is ActorKind.HUMAN for one in item.decisions)


def may_decide(record: SuspensionRecord, item: Item, by: Actor) -> bool:
    """Return whether this actor is one of the item's reviewers."""
    if by.kind is not ActorKind.HUMAN or (item.terms.no_self_approval and by.id == record.run.owner):
        return False
    return is_named(item.terms, by)


def see(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int) -> Change:
    """Record that a reviewer has seen an item. Later sightings, and those after the deadline, change nothing."""
    check_step(record, "see")
    item = next((one for one in record.items if one.item_id == item_id), None)
    if item is None or now_ms >= item.terms.deadline_at_ms:
        return Change(record)
    if not needs_sight(record, item) or not may_decide(record, item, by):
        return Change(record)
    by = keep_groups(item.terms, by)
    seen = item.model_copy(update={"seen_by": by, "seen_at_ms": now_ms})
    data = {"suspension_id": record.id, "item_id": item_id, "by": by.model_dump(mode="json")}
    return put_item(record, seen, (Event(type=EventType.ITEM_SEEN, data=data),), now_ms)
