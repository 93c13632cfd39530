"""Transitions that time causes on a pending suspension. Each changes nothing before its moment.

A sighting is one, too: it records that a reviewer opened an item or decided on it, so its fallback may approve it.
"""

from sayso.core.clock import iso_utc
from sayso.core.records.decisions import TIMEOUT, Actor, ActorKind, Decision, DecisionAction
from sayso.core.records.deliveries import DeliveryState, ask_anew, queue_deliveries
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.terms import FallbackAction
from sayso.core.transitions.closing import (
    change_terms,
    close_item,
    describe_decision,
    describe_item,
    next_due,
    put_item,
)
from sayso.core.transitions.decision_checks import entitle, may_decide
from sayso.core.transitions.legal import check_step
from sayso.core.transitions.quorum import needs_confirmation, take_effect


def needs_sight(record: SuspensionRecord, item: Item) -> bool:
    """Return whether the fallback would approve this open item unseen; headless runs need no reviewer."""
    if not item.open or item.terms.fallback.action is not FallbackAction.APPROVE:
        return False
    timed = item.terms.deadline_at_ms > record.created_at_ms + item.held_ms
    known = item.seen_by is not None or any(delivery.proven and not delivery.invitation for delivery in item.deliveries)
    known = known or any(decision.retracted for decision in item.voided)
    return timed and not known and not any(decision.by.kind is ActorKind.HUMAN for decision in item.decisions)


def see(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int) -> Change:
    """Record that a reviewer has seen an item in time: on their deliveries, and where its fallback depends on it."""
    check_step(record, "see")
    item = next((item for item in record.items if item.item_id == item_id), None)
    if item is None or now_ms >= item.terms.deadline_at_ms or not may_decide(record, item, by):
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


NONE_HELD: frozenset[str] = frozenset()


def expire(record: SuspensionRecord, now_ms: int, held: frozenset[str] = NONE_HELD) -> Change:
    """Apply the fallback of every open item whose deadline has passed, except the `held` ones."""
    check_step(record, "expire")
    change = Change(record)
    for place in range(len(record.items)):
        item = change.record.items[place]  # closing one item may have closed the others
        waits = item.open and item.undoable is None and item.item_id not in held
        if waits and now_ms >= item.terms.deadline_at_ms:
            if escalates_at_deadline(change.record, item):
                deadline_at_ms = now_ms + escalation_time_ms(change.record, item)
                second = add_reviewers(change.record, item, deadline_at_ms, now_ms)
            else:
                second = _time_out(change.record, item, now_ms)
            change = _then(change, second)
    return change


def escalate(record: SuspensionRecord, now_ms: int, held: frozenset[str] = NONE_HELD) -> Change:
    """Add the reviewers of every due escalation step to the items that are still open."""
    check_step(record, "escalate")
    change = Change(record)
    for item in record.items:
        if item.item_id in held or item.undoable is not None:
            continue
        while item.open and (due := next_step_at_ms(record, item)) is not None and now_ms >= due:
            change = _then(change, add_reviewers(change.record, item, item.terms.deadline_at_ms, now_ms))
            item = next(changed for changed in change.record.items if changed.item_id == item.item_id)  # noqa: PLW2901
    return change


def escalation_time_ms(record: SuspensionRecord, item: Item) -> int:
    """Return how long reviewers added at the deadline have: as long as the item has waited."""
    return max(item.terms.deadline_at_ms - record.created_at_ms - item.held_ms, 1000)


def remind(record: SuspensionRecord, now_ms: int, held: frozenset[str] = NONE_HELD) -> Change:
    """Remind the reviewers of every open item that is due for it. Several missed reminders become one."""
    check_step(record, "remind")
    change = Change(record)
    for item in record.items:
        passed = sum(at_ms <= now_ms for at_ms in item.terms.remind_at_ms)
        if item.open and item.undoable is None and item.item_id not in held and passed > item.reminded:
            data = {**describe_item(record, item), "reviewers": list(item.asked_reviewers)}
            event = Event(EventType.REVIEWER_REMINDED, data)
            reminded = item.model_copy(update={"reminded": passed})
            change = _then(change, put_item(change.record, reminded, (event,), now_ms))
    return change


def keep_time(record: SuspensionRecord, now_ms: int, held: frozenset[str] = NONE_HELD) -> Change:
    """Apply all that is due: decisions, then for items that are not `held` deadlines, escalations and reminders."""
    change = take_effect(record, now_ms)
    for step in (expire, escalate, remind):
        if change.record.status is Status.PENDING:
            change = _then(change, step(change.record, now_ms, held))
    record = change.record
    if held or record.status is not Status.PENDING or (record.due_at_ms or 0) > now_ms:
        return change
    return change._replace(record=record.model_copy(update={"due_at_ms": next_due(record)}))


def _then(first: Change, second: Change) -> Change:
    events, ready = first.events + second.events, first.ready or second.ready
    return first._replace(record=second.record, events=events, ready=ready)


def _time_out(record: SuspensionRecord, item: Item, now_ms: int) -> Change:
    fallback = item.terms.fallback
    unseen = needs_sight(record, item)
    # A confirmed call is decided by its approvals, so one that still waits is not approved as it was confirmed.
    unconfirmed = item.terms.confirm_by is not None and fallback.action is not FallbackAction.FAIL
    denies = unseen or unconfirmed or fallback.action is FallbackAction.ESCALATE
    action = FallbackAction.DENY if denies else fallback.action
    waited = f"{item.terms.confirm_by} has not confirmed it" if needs_confirmation(item) else "Nobody decided"
    what = "No reviewer saw it" if unseen else waited
    decision = Decision(
        id=f"{record.id}:{item.item_id}:timeout",
        suspension_id=record.id,
        suspension_version=record.version,
        item_id=item.item_id,
        action=DecisionAction(action),
        value=fallback.value if action is FallbackAction.VALUE else None,
        message=(not unseen and fallback.message) or f"{what} before {iso_utc(item.terms.deadline_at_ms)}.",
        args_digest=item.digest,
        stage=item.terms.stage,
        by=TIMEOUT,
        at_ms=now_ms,
    )
    closed = close_item(record, item.model_copy(update={"decisions": (*item.decisions, decision)}), decision, now_ms)
    verdict = closed.outcome.verdict if closed.outcome else None
    data = {**describe_item(record, item), "fallback": fallback.action, "verdict": verdict}
    data |= describe_decision(closed, decision)
    return put_item(record, closed, (Event(EventType.TIMED_OUT, data),), now_ms)


def escalates_at_deadline(record: SuspensionRecord, item: Item) -> bool:
    """Return whether the deadline adds reviewers: the fallback says so, or would approve an item nobody has seen."""
    adds_reviewers = item.terms.fallback.action is FallbackAction.ESCALATE or needs_sight(record, item)
    return adds_reviewers and item.escalated < len(item.terms.escalate)


def next_step_at_ms(record: SuspensionRecord, item: Item) -> int | None:
    """Return when the reviewers of the item's next escalation step are added; None without a step."""
    if item.escalated >= len(item.terms.escalate):
        return None
    return record.created_at_ms + item.held_ms + item.terms.escalate[item.escalated].after_s * 1000


def add_reviewers(record: SuspensionRecord, item: Item, deadline_at_ms: int, now_ms: int) -> Change:
    """Add the reviewers of the item's next escalation step, and queue their deliveries."""
    step = item.terms.escalate[item.escalated]
    joined = tuple(dict.fromkeys((*item.terms.reviewers, *step.reviewers))) if item.terms.reviewers else ()
    place = (item.escalated + 1, item.terms.stage, len(item.forwards))
    queued = queue_deliveries(item.terms.channels, step.reviewers, *place)
    deliveries = ask_anew(item.deliveries, queued, item.reminders)
    terms = {"reviewers": joined, "deadline_at_ms": deadline_at_ms}
    called = change_terms(record, item, terms, escalated=item.escalated + 1, deliveries=deliveries)
    data = {**describe_item(record, called), "reviewers": list(step.reviewers)}
    return put_item(record, called, (Event(EventType.ESCALATED, data),), now_ms)
