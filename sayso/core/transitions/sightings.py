"""Transitions for sightings: a reviewer opened an item or decided on it, so its fallback may approve it."""

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.deliveries import DeliveryState
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.records.terms import FallbackAction
from sayso.core.transitions.closing import put_item
from sayso.core.transitions.decision_checks import entitle, may_decide
from sayso.core.transitions.legal import check_step


def needs_sight(record: SuspensionRecord, item: Item) -> bool:
    """Return whether the fallback would approve this open item, although nobody saw it or received its card.

    Headless runs need no reviewer.
    """
    if not item.open or item.terms.fallback.action is not FallbackAction.APPROVE:
        return False
    timed = item.terms.deadline_at_ms > record.created_at_ms + item.held_ms
    known = item.seen_by is not None or any(delivery.proven for delivery in item.deliveries)
    return timed and not known and not any(decision.by.kind is ActorKind.HUMAN for decision in item.decisions)


def see(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int) -> Change:
    """Record that a reviewer has seen an item: on their deliveries, and where its fallback depends on it.

    Later sightings, and those after the deadline, change nothing.
    """
    check_step(record, "see")
    item = next((item for item in record.items if item.item_id == item_id), None)
    if item is None or now_ms >= item.terms.deadline_at_ms:
        return Change(record)
    if not may_decide(record, item, by):
        return Change(record)
    marked = mark_seen(item, by, now_ms)
    if not needs_sight(record, item):
        return Change(record) if marked is item else put_item(record, marked, (), now_ms)
    by = entitle(record, item, by) or by
    seen = marked.model_copy(update={"seen_by": by, "seen_at_ms": now_ms})
    data = {"suspension_id": record.id, "item_id": item_id, "by": by.model_dump(mode="json")}
    return put_item(record, seen, (Event(EventType.ITEM_SEEN, data),), now_ms)


def mark_seen(item: Item, by: Actor, now_ms: int) -> Item:
    """Return the item with this person's deliveries marked as seen, or the same item."""
    seen = tuple(
        delivery.model_copy(update={"state": DeliveryState.SEEN, "seen_at_ms": now_ms})
        if delivery.person == by.id and delivery.state is DeliveryState.SENT
        else delivery
        for delivery in item.deliveries
    )
    return item if seen == item.deliveries else item.model_copy(update={"deliveries": seen})
