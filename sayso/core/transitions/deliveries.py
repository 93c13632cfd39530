"""Transitions for the deliveries of an item's cards, and the next time that one of them needs an attempt."""

from collections.abc import Mapping, Sequence

from sayso.core.canonical_json import digest_json
from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.deadlines import add_reviewers
from sayso.core.transitions.legal import check_step

AT_ONCE = 0
"""The due time of new cards and updates: earlier than any repetition, so that a backlog of those delays none."""


def is_live(record: SuspensionRecord, item: Item) -> bool:
    """Return whether the item can still be decided."""
    return item.open and record.status is Status.PENDING


def card_version(record: SuspensionRecord, item: Item) -> str:
    """Return the version of an item's card; it changes with everything that a card shows of the item's progress."""
    outcome = item.outcome
    closed = [outcome.verdict, outcome.by.id, outcome.at_ms] if outcome is not None else []
    decisions = [[decision.by.id, decision.action] for decision in item.decisions]
    inquiries = [[[inquiry.id, inquiry.open] for inquiry in item.inquiries]] if item.inquiries else []
    live = is_live(record, item)
    claims = [["claim", item.claim.by.id, item.claim.shown_until_ms]] if live and item.claim is not None else []
    undo = [["undo", item.undoable.by.id, item.undoable.until_ms]] if live and item.undoable is not None else []
    given = item.confirmation
    confirmed = [["confirmed", given.id]] if given is not None else []
    shown = [item.digest, live, closed, decisions, [*item.terms.reviewers], *inquiries, *claims, *undo, *confirmed]
    return digest_json(shown)[:16]


def next_delivery_ms(record: SuspensionRecord) -> int | None:
    """Return when the next attempt at a delivery is due, or None; `AT_ONCE` for what no attempt has failed at."""
    cards = ((item, card) for item in record.items for card in item.deliveries)
    moments = (card.next_try_at_ms or AT_ONCE for item, card in cards if needs_attempt(record, item, card))
    return min(moments, default=None)


def needs_attempt(record: SuspensionRecord, item: Item, delivery: CardDelivery) -> bool:
    """Return whether a delivery has something to send: the card, its current version, a reminder or the outcome."""
    live = is_live(record, item)
    if not delivery.proven:
        wanted = live or delivery.outcome
        return wanted and (delivery.state is DeliveryState.QUEUED or delivery.next_try_at_ms is not None)
    reminds = live and delivery.stage == item.terms.stage and delivery.reminded < item.reminders
    return reminds or delivery.shown != card_version(record, item)


def record_deliveries(record: SuspensionRecord, reports: Sequence[DeliveryReport], now_ms: int) -> Change:
    """Save the results of attempts at deliveries.

    If no card of an escalation step could be sent, or nobody in it is within working hours, the next step is asked at
    once. A delivery that was removed or replaced meanwhile is ignored.
    """
    check_step(record, "record_deliveries")
    items = {item.item_id: item for item in record.items}
    events: list[Event] = []
    for report in reports:
        item = items.get(report.item_id)
        before = next((delivery for delivery in item.deliveries if delivery.key == report.key), None) if item else None
        if item is None or before is None:
            continue
        kept = [delivery for delivery in item.deliveries if delivery.key != report.key]
        taken = {delivery.key for delivery in kept}  # who has a delivery on the channel gets no second one
        added = (delivery for delivery in report.became if delivery.key not in taken)
        items[item.item_id] = item.model_copy(update={"deliveries": (*kept, *added)})
        for after in report.became:
            about = {"suspension_id": record.id, "item_id": item.item_id, "channel": after.channel}
            about["person"] = after.person
            if after.proven and not before.proven:
                events.append(Event(EventType.CARD_SENT, about))
            elif after.state is DeliveryState.FAILED and before.state is not DeliveryState.FAILED:
                events.append(Event(EventType.CARD_FAILED, {**about, "reason": after.reason}))
    if items == {item.item_id: item for item in record.items}:
        return Change(record)
    change = Change(record.model_copy(update={"items": tuple(items.values())}))
    if record.status is not Status.PENDING:
        return change
    change = Change(change.record.model_copy(update={"updated_at_ms": now_ms}), tuple(events))
    for item in change.record.items:
        current = [card for card in item.deliveries if card.step == item.escalated]
        unreached = bool(current) and all(card.off_duty or card.state is DeliveryState.FAILED for card in current)
        if item.open and unreached and item.escalated < len(item.terms.escalate):
            escalated = add_reviewers(change.record, item, item.terms.deadline_at_ms, now_ms)
            change = Change(escalated.record, change.events + escalated.events)
    return change


def move_cards(record: SuspensionRecord, chains: Mapping[str, tuple[str, ...]], now_ms: int) -> Change:
    """Queue the cards of absent people for their delegates. `chains` has the delegates of each, the present one last.

    A card that was sent stays, so that it is updated when the item closes. A chain with the requester moves nothing.
    """
    check_step(record, "move_cards")
    items, events = list(record.items), []
    for place, item in enumerate(items):
        cards = [(card, chains.get(card.person, ())) for card in item.deliveries] if is_live(record, item) else []
        moved = {
            card.key: CardDelivery(channel=card.channel, person=chain[-1], step=card.step, stage=card.stage)
            for card, chain in cards
            if chain and record.run.owner not in chain and card.person != item.terms.confirm_by
        }
        if not moved:
            continue
        kept = [delivery for delivery in item.deliveries if delivery.proven or delivery.key not in moved]
        known = {delivery.key for delivery in kept}
        added = {delivery.key: delivery for delivery in moved.values() if delivery.key not in known}
        items[place] = item.model_copy(update={"deliveries": (*kept, *added.values())})
        about = {"suspension_id": record.id, "item_id": item.item_id}
        for (channel, person), delivery in moved.items():
            if delivery.key in added:
                data = {**about, "channel": channel, "person": person, "delegate": delivery.person}
                events.append(Event(EventType.CARD_MOVED, data))
    if tuple(items) == record.items:
        return Change(record)
    return Change(record.model_copy(update={"items": tuple(items), "updated_at_ms": now_ms}), tuple(events))
