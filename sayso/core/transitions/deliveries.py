"""Transitions that say who is asked: forwards of items, and deliveries of their cards with the time of the next one."""

from collections.abc import Mapping, Sequence

from sayso.core.canonical_json import digest_json
from sayso.core.records.decisions import Actor, ForwardRequest
from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState, ask_anew, queue_deliveries
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import MOST_FORWARDS, Forward, Item
from sayso.core.records.proofs import Invitation
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.terms import group_of
from sayso.core.text.redaction import Redacted, redact
from sayso.core.transitions.closing import describe_item, list_typed, put_item
from sayso.core.transitions.deadlines import add_reviewers
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.decision_checks import check_change, check_reviewer
from sayso.core.transitions.legal import check_step
from sayso.errors import AlreadyDecided, Conflict, InvalidInput, NotAllowed, SelfApproval, StaleDigest

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
    forwards = [["forwarded", item.forwarded.id]] if live and item.forwarded is not None else []
    states = (*inquiries, *claims, *undo, *confirmed, *forwards)
    shown = [item.digest, live, closed, decisions, [*item.terms.reviewers], *states]
    return digest_json(shown)[:16]


def next_delivery_ms(record: SuspensionRecord) -> int | None:
    """Return when the next attempt at a delivery is due, or None; `AT_ONCE` for what no attempt has failed at."""
    cards = ((item, card) for item in record.items for card in item.deliveries)
    moments = (card.next_try_at_ms or AT_ONCE for item, card in cards if needs_attempt(record, item, card))
    return min(moments, default=None)


def needs_attempt(record: SuspensionRecord, item: Item, delivery: CardDelivery) -> bool:
    """Return whether a delivery has something to send: the card, its current version, a reminder or the outcome."""
    live = is_live(record, item)
    if delivery.invitation:
        live = live and not delivery.proven and any(_mails(item, known, delivery) for known in item.invitations)
        return live and (delivery.state is DeliveryState.QUEUED or delivery.next_try_at_ms is not None)
    if not delivery.proven:
        wanted = delivery.outcome or (live and not is_held(item, delivery))
        return wanted and (delivery.state is DeliveryState.QUEUED or delivery.next_try_at_ms is not None)
    reminds = live and is_asked(item, delivery) and delivery.reminded < item.reminders
    return reminds or delivery.shown != card_version(record, item)


def is_asked(item: Item, delivery: CardDelivery) -> bool:
    """Return whether the person of a delivery is reminded: they are of the current stage, and of its forward if any."""
    return delivery.stage == item.terms.stage and not is_held(item, delivery)


def is_held(item: Item, delivery: CardDelivery) -> bool:
    """Return whether a delivery waits, because the item was forwarded to others. That to the acting user never does."""
    if item.forwarded is None or delivery.person == item.terms.confirm_by:
        return False
    return delivery.forward < len(item.forwards)


def _mails(item: Item, invitation: Invitation, delivery: CardDelivery) -> bool:
    """Whether a delivery is that of an invitation which has not ended, to the item as it is."""
    return (invitation.id, invitation.digest, invitation.ended) == (delivery.invitation, item.digest, None)


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
        became = {delivery.key for delivery in report.became}
        kept = [
            delivery
            for delivery in item.deliveries
            if delivery.key != report.key
            and not (delivery.key in became and is_held(item, delivery) and not delivery.proven)
        ]
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
        current = [card for card in _list_latest(item) if not card.invitation]
        unreached = bool(current) and all(card.off_duty or card.state is DeliveryState.FAILED for card in current)
        if item.open and unreached and item.escalated < len(item.terms.escalate):
            escalated = add_reviewers(change.record, item, item.terms.deadline_at_ms, now_ms)
            change = Change(escalated.record, change.events + escalated.events)
    return change


def _list_latest(item: Item) -> list[CardDelivery]:
    """Return the deliveries of the last escalation step, or of a forward since then."""
    forward = item.forwarded
    if forward is not None and forward.escalated == item.escalated:
        return [card for card in item.deliveries if is_asked(item, card)]
    return [card for card in item.deliveries if card.step == item.escalated]


def move_cards(record: SuspensionRecord, chains: Mapping[str, tuple[str, ...]], now_ms: int) -> Change:
    """Queue the cards of absent people for their delegates. `chains` has the delegates of each, the present one last.

    A card that was sent stays, so that it is updated when the item closes. A chain with the requester moves nothing.
    """
    check_step(record, "move_cards")
    items, events = list(record.items), []
    for place, item in enumerate(items):
        cards = [(card, chains.get(card.person, ())) for card in item.deliveries] if is_live(record, item) else []
        moved = {
            card.key: CardDelivery(
                channel=card.channel, person=chain[-1], step=card.step, stage=card.stage, forward=card.forward
            )
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


def forward(
    record: SuspensionRecord,
    item_id: str,
    request: ForwardRequest,
    forward_id: str,
    people: Sequence[Actor],
    by: Actor,
    now_ms: int,
    lost_ms: int = 0,
) -> Change:
    """Ask somebody else to decide; `people` are the active ones behind the recipient.

    From then on they are asked instead of the reviewers, who still may decide. Deadline and fallback stay, and later
    escalations join. The same forward again changes nothing. Raises `NotAllowed` for a recipient who may not decide,
    `Conflict` after `MOST_FORWARDS`, or as `decide` does.
    """
    item = find_item(record, item_id)
    if any(known.id == forward_id for known in item.forwards):
        return Change(record)
    check_change(record, item, "forward", now_ms - lost_ms)
    if request.digest != item.digest:
        raise StaleDigest(digest=item.digest)
    by = check_reviewer(record, item, by)
    if not item.terms.quorum.approve:
        raise InvalidInput(f"Only {item.terms.confirm_by} lets this call run, so it cannot be forwarded.")
    note = Redacted({}, list_typed(record)).scrub(redact(item.tool.args, None, item.terms.secrets).scrub(request.note))
    last = item.forwarded
    if last is not None and (last.by.id, last.to, last.note) == (by.id, request.to, note.strip()):
        return Change(record)
    if len(item.forwards) >= MOST_FORWARDS:
        raise Conflict(f"This item was forwarded {MOST_FORWARDS} times. Decide it, or deny it with a reason.")
    if item.drill is not None:
        item = item.model_copy(update={"drill": item.drill.model_copy(update={"reviewer": ""})})
    names = _find_recipients(record, item, request.to, people, by)
    given = Forward(
        id=forward_id,
        by=by,
        to=request.to,
        note=note.strip(),
        at_ms=now_ms,
        stage=item.terms.stage,
        escalated=item.escalated,
    )
    claim = None if item.claim is not None and item.claim.by.id == by.id else item.claim
    update = {"forwards": (*item.forwards, given), "claim": claim, "deliveries": _queue_forward(item, names)}
    data = {**describe_item(record, item), "by": by.model_dump(mode="json"), "to": given.to, "note": given.note}
    return put_item(record, item.model_copy(update=update), (Event(EventType.ITEM_FORWARDED, data),), now_ms)


def _find_recipients(
    record: SuspensionRecord, item: Item, to: str, people: Sequence[Actor], by: Actor
) -> tuple[str, ...]:
    """Return the names of those behind the recipient who may decide; raises `InvalidInput` or `NotAllowed`.

    A group must be named itself, for its members may change.
    """
    if to == by.id:
        raise InvalidInput("You cannot forward an item to yourself. Decide it, or choose another reviewer.")
    is_named = group_of(to) is None or not item.terms.reviewers or to in item.terms.reviewers
    refused = f"{to} is no active reviewer who may decide this item" if is_named else f"{to} may not decide this item"
    names: list[str] = []
    for person in people if is_named else ():
        try:
            check_reviewer(record, item, person)
        except SelfApproval:
            refused = f"{person.id} requested this call, or made its key, and may not decide it"
        except AlreadyDecided:
            refused = f"{person.id} has already decided on this item"
        except NotAllowed:
            refused = f"{person.id} may not decide this item"
        else:
            names.append(person.id)
    if not names:
        excluded = {by.id, *record.run.list_excluded(item.terms)}
        others = [name for name in item.terms.reviewers if name not in excluded]
        if others:
            able = ", ".join(others)
            raise NotAllowed(f"{refused}. Only {able} can. Choose one of them.", reviewers=others)
        if not item.terms.reviewers:
            raise NotAllowed(f"{refused}. Any other reviewer can. Choose another.")
        raise NotAllowed(f"{refused}. Only you can. Decide it.")
    return tuple(names)


def _queue_forward(item: Item, names: tuple[str, ...]) -> tuple[CardDelivery, ...]:
    """Return the deliveries with those to the recipients; cards in shared destinations are repeated for them, too."""
    number, stage = len(item.forwards) + 1, item.terms.stage
    queued = queue_deliveries(item.terms.channels, names, 0, stage, number)
    marks = {"stage": stage, "forward": number}
    shared = (card.model_copy(update=marks) for card in item.deliveries if card.proven and not card.person)
    return ask_anew(item.deliveries, (*queued, *shared), item.reminders)
