"""Quorum of an item: whose decisions agree, whether they are enough, and which outcome or stage then follows."""

from sayso.core.canonical_json import JsonObject, canonical_json, digest_json
from sayso.core.records.decisions import Actor, Decision, DecisionAction, list_filled
from sayso.core.records.deliveries import CardDelivery, queue_deliveries
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item, ItemKind
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.closing import (
    args_of,
    change_terms,
    close_item,
    describe_decision,
    describe_item,
    keep_preview,
    put_item,
    want_preview,
)
from sayso.core.transitions.legal import check_step
from sayso.core.transitions.permits import is_confirmed


def find_counted(item: Item, by: Actor) -> Decision | None:
    """Return the earlier decision that counts for the same reviewer, made by them or by their delegate."""
    person = by.for_person or by.id
    return next((decision for decision in item.decisions if person in (decision.by.id, decision.by.for_person)), None)


def is_quorum_met(item: Item, decision: Decision) -> bool:
    """Whether enough reviewers agree; approvals agree only on the same arguments."""
    if decision.action is DecisionAction.DENY:
        people = {denial.by.human for denial in item.current if denial.action is DecisionAction.DENY}
        return len(people) >= item.terms.quorum.deny
    quorum = item.terms.quorum
    if quorum.approve == 1 and not quorum.each_of:
        return True
    agreeing = list_agreeing(item, decision)
    enough = len({by.human for by in agreeing}) >= quorum.approve
    return enough and len(list_filled(quorum.each_of, agreeing)) == len(quorum.each_of)


def list_agreeing(item: Item, decision: Decision) -> list[Actor]:
    """Return who has approved the same arguments, or given the same value, as this decision."""
    args = canonical_json(args_of(item, decision))
    alike = [other for other in item.current if other.action is decision.action]
    return [other.by for other in alike if canonical_json(args_of(item, other)) == args]


def completes_quorum(item: Item, decision: Decision) -> bool:
    """Whether the quorum is met once this decision counts."""
    alone = item.drill is not None and item.drill.reviewer  # nobody else can complete its quorum
    return bool(alone) or is_quorum_met(_add(item, decision), decision)


def decides(item: Item, decision: Decision) -> bool:
    """Whether the item closes once this decision counts: its quorum is met, and its call is confirmed if it may run."""
    denies = decision.action is DecisionAction.DENY
    if not completes_quorum(item, decision) or moves_on(item, decision):
        return False
    return denies or is_confirmed(item, args_of(item, decision))


def moves_on(item: Item, decision: Decision) -> bool:
    """Whether this decision, if it completes the quorum, starts the next stage instead of closing the item."""
    return item.terms.following is not None and decision.action is not DecisionAction.DENY


def find_args(item: Item) -> JsonObject | None:
    """Return the arguments to confirm: as approved last, else as requested; None while a value is missing."""
    if given := _list_assents(item):
        return args_of(item, find_deciding(item) or given[-1])
    return item.tool.args if item.kind is ItemKind.APPROVAL else None


def find_deciding(item: Item) -> Decision | None:
    """Return the approval, or value, with which the quorum of an open item is met; None while it is short."""
    return next((decision for decision in reversed(_list_assents(item)) if is_quorum_met(item, decision)), None)


def _list_assents(item: Item) -> list[Decision]:
    return [decision for decision in item.current if decision.action is not DecisionAction.DENY]


def needs_confirmation(item: Item) -> bool:
    """Return whether an open item waits for the acting user, as it would run now."""
    args = find_args(item)
    return item.open and item.terms.confirm_by is not None and (args is None or not is_confirmed(item, args))


def record_decision(record: SuspensionRecord, item: Item, decision: Decision, now_ms: int) -> Change:
    """Add a decision to an item; a met quorum closes the item, and the last item the suspension."""
    closes, met = decides(item, decision), completes_quorum(item, decision)
    passes = met and moves_on(item, decision)
    item = _add(item, decision)
    if closes:
        item = close_item(record, item, decision, now_ms)
    kept = {"item_id", "action", "by", "message", "shown", "proof", "code_used", "invited"}
    data = decision.model_dump(mode="json", include=kept)
    data |= {"suspension_id": record.id, "decision_id": decision.id, "digest": decision.args_digest}
    data |= {"edited": decision.args is not None, "verdict": item.outcome.verdict if item.outcome else None}
    data |= {"waits_for": item.terms.confirm_by} if met and not closes and not passes else {}
    data |= {"stage": item.terms.stage + 1} if item.terms.stages else {}
    sample = item.terms.sample
    if item.outcome is not None and sample is not None and sample.after is not None:
        data["second_look"] = sample.after
    if item.drill is not None:
        data |= {"drill": item.drill.template, "caught": decision.action is DecisionAction.DENY}
    recorded = Event(EventType.DECISION_RECORDED, data | describe_decision(item, decision))
    if not passes:
        return put_item(record, item, (recorded,), now_ms)
    moved = _start_stage(record, item, decision, now_ms)
    return put_item(record, moved, (recorded, _describe_stage(record, moved)), now_ms)


def take_effect(record: SuspensionRecord, now_ms: int) -> Change:
    """Let every decision count whose time to be undone is over, up to one that does more than decide its item.

    The others stay due, because a change holds what one decision does.
    """
    check_step(record, "take_effect")
    change = Change(record)
    for place in range(len(record.items)):
        item = change.record.items[place]  # closing one item may have closed the others
        undoable = item.undoable
        if undoable is None or now_ms < undoable.until_ms:
            continue
        free = item.model_copy(update={"undoable": None})
        second = record_decision(change.record, free, undoable.decision, now_ms)
        outcome = second.record.items[place].outcome
        mandate = undoable.mandate if outcome is not None and outcome.may_run else None
        change = Change(
            second.record,
            change.events + second.events,
            ready=second.ready,
            grant=undoable.grant,
            mandate=mandate,
            suspended=undoable.suspended,
        )
        if change.grant or change.mandate or change.suspended:
            break
    return change


def _add(item: Item, decision: Decision) -> Item:
    return item.model_copy(update={"decisions": (*item.decisions, decision)})


def _start_stage(record: SuspensionRecord, item: Item, decision: Decision, now_ms: int) -> Item:
    """Return the item with the next stage, whose reviewers see the arguments that `decision` has approved.

    Reviewers whom an escalation added stay. The cards of the next stage are queued, and unsent earlier ones dropped.
    """
    stage = item.terms.following
    assert stage is not None  # noqa: S101  only then the decision moves on
    joined = (name for step in item.terms.escalate[: item.escalated] for name in step.reviewers)
    reviewers = tuple(dict.fromkeys((*stage.reviewers, *joined)))
    update: dict[str, object] = {"claim": None, "deliveries": _queue_stage(item, reviewers)}
    args = args_of(item, decision)
    if canonical_json(args) != canonical_json(item.tool.args):
        requested = item.requested or digest_json(item.tool.args)
        update |= {"tool": item.tool.model_copy(update={"args": args}), "requested": requested}
        update["original"] = item.tool.args if item.original is None else item.original
        update |= {"previews": keep_preview(item, args), "preview_request": None}
    terms = {"stage": item.terms.stage + 1, "reviewers": reviewers, "quorum": stage.quorum}
    return change_terms(record, want_preview(record, item.model_copy(update=update), now_ms), terms)


def _queue_stage(item: Item, reviewers: tuple[str, ...]) -> tuple[CardDelivery, ...]:
    """Return the deliveries of the next stage: who has a card already is reminded of it."""
    stage = item.terms.stage + 1
    fresh = {"stage": stage, "reminded": item.reminders - 1}
    kept = tuple(
        card.model_copy(update=fresh) if card.person in ("", *reviewers) else card
        for card in item.deliveries
        if card.proven
    )
    known = {card.key for card in kept}
    queued = queue_deliveries(item.terms.channels, reviewers, stage=stage)
    return (*kept, *(card for card in queued if card.key not in known))


def _describe_stage(record: SuspensionRecord, item: Item) -> Event:
    """Return the event of a stage that starts."""
    terms = item.terms
    data = {**describe_item(record, item), "stage": terms.stage + 1, "stages": len(terms.stages)}
    data |= {"reviewers": [*terms.reviewers], "quorum": terms.quorum.state(), "digest": item.digest}
    return Event(EventType.STAGE_STARTED, data)
