"""Transitions from a new suspension to a decided one, and those that take a decision out of an open item.

`now_ms` is the store server's time.
"""

from collections.abc import Collection

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor, ActorKind, Confirmation, Decision, Verdict, VoidedDecision
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item, ItemDraft, PresetOutcome, freeze_item
from sayso.core.records.permissions import Grant
from sayso.core.records.suspensions import Change, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.core.records.tools import ToolResult
from sayso.core.records.undoing import UndoableDecision
from sayso.core.text.redaction import redact
from sayso.core.transitions import closing
from sayso.core.transitions.deadlines import expire
from sayso.core.transitions.decision_checks import (
    check_change,
    check_decision,
    check_person,
    check_reviewer,
    is_repeat,
)
from sayso.core.transitions.legal import check_step
from sayso.core.transitions.quorum import completes_quorum, decides, moves_on, record_decision
from sayso.errors import Conflict, InvalidInput, NotFound


def suspend(new: SuspensionRecord, drafts: tuple[ItemDraft, ...], now_ms: int) -> Change:
    """Return a new suspension with its items, some perhaps past their deadline, or a run that is ready to start."""
    frozen = (freeze_item(draft, f"i{place}", new.binding, now_ms) for place, draft in enumerate(drafts, start=1))
    items = tuple(frozen)
    run = new.run if new.run.started_at_ms else new.run.model_copy(update={"started_at_ms": now_ms})
    update = {"items": items, "run": run, "status": Status.PENDING, "created_at_ms": now_ms, "updated_at_ms": now_ms}
    record = new.model_copy(update=update)
    if not items:
        about = {"agent": run.agent, "claimed_title": run.title, "owner": run.owner, **run.describe_who()}
        return closing.close_suspension(record, (Event(EventType.RUN_STARTED, about),), now_ms)
    items = tuple(
        closing.close_with_preset(record, item, draft.preset, now_ms) if draft.preset else item
        for item, draft in zip(items, drafts, strict=True)
    )
    record = record.model_copy(update={"items": tuple(closing.want_preview(record, item, now_ms) for item in items)})
    shown = [
        {
            "item_id": item.item_id,
            "call_id": item.call_id,
            "tool_name": item.tool.name,
            "kind": item.kind,
            "reason": _describe_reason(item),
            "deadline_at_ms": item.terms.deadline_at_ms,
        }
        for item in items
    ]
    about = {"tool_name": shown[0]["tool_name"], "reason": shown[0]["reason"]}
    events = (Event(EventType.RUN_PAUSED, about | {"payload": {"suspension_id": record.id, "items": shown}}),)
    if not any(item.open for item in record.items):
        return closing.close_suspension(record, (*events, closing.describe_decided(record)), now_ms)
    expired = expire(record.model_copy(update={"due_at_ms": closing.next_due(record)}), now_ms)
    return Change(expired.record, events + expired.events, ready=expired.ready)


def decide(
    record: SuspensionRecord, decision: Decision, now_ms: int, lost_ms: int = 0, *, at_once: bool = False
) -> Change:
    """Record a reviewer's decision on an item. A met quorum closes the item, and the last item the suspension.

    With `undo` in the terms it takes effect after that time, unless `at_once`. `lost_ms` is frozen time, which does not
    count. The same decision again changes nothing. Raises `AlreadyDecided`, `Conflict`, `DeadlinePassed`,
    `StaleDigest`, `NotAllowed`, `SelfApproval`, `InvalidInput`, `IdempotencyConflict` or `NotFound`.
    """
    item = find_item(record, decision.item_id)
    if is_repeat(item, decision):
        return Change(record)
    by = check_decision(record, item, decision, "decide", now_ms - lost_ms)
    decision = decision.model_copy(update={"by": by})
    return apply_decision(record, item, decision, now_ms, lost_ms, at_once=at_once)


def apply_decision(
    record: SuspensionRecord, item: Item, decision: Decision, now_ms: int, lost_ms: int, *, at_once: bool = False
) -> Change:
    """Record a checked decision in the current stage, at once or after the time in which it can be undone."""
    decision = decision.model_copy(update={"stage": item.terms.stage})
    until_ms = _find_undo_end(item, decision, now_ms, lost_ms)
    if at_once or until_ms <= now_ms:
        return record_decision(record, item, decision, now_ms)
    deferred = item.model_copy(update={"undoable": UndoableDecision(decision=decision, until_ms=until_ms)})
    data = {**closing.describe_item(record, item), "decision_id": decision.id, "until_ms": until_ms}
    data |= decision.model_dump(mode="json", include={"action", "by"})
    return closing.put_item(record, deferred, (Event(EventType.DECISION_DEFERRED, data),), now_ms)


def _find_undo_end(item: Item, decision: Decision, now_ms: int, lost_ms: int) -> int:
    """Return when a decision takes effect; at once if it closes neither the item nor its stage."""
    if not completes_quorum(item, decision) or not (decides(item, decision) or moves_on(item, decision)):
        return now_ms
    longest_s = min(item.terms.undo_s, item.terms.start_by_s)
    return min(now_ms + longest_s * 1000, item.terms.deadline_at_ms + lost_ms)


def defer_effects(record: SuspensionRecord, change: Change, item_id: str, suspended: tuple[Grant, ...] = ()) -> Change:
    """Return the change of a decision that also suspends grants.

    What it does beside deciding its item waits with it while it can be undone. A repeated decision does nothing.
    """
    if change.record is record:
        return change
    item = find_item(change.record, item_id)
    if item.undoable is None:
        return change._replace(suspended=suspended)
    effects = {"grant": change.grant, "mandate": change.mandate, "suspended": suspended}
    deferred = item.model_copy(update={"undoable": item.undoable.model_copy(update=effects)})
    return change._replace(record=change.record.with_item(deferred), grant=None, mandate=None)


def ask_again(record: SuspensionRecord, decision: Decision, draft: ItemDraft, now_ms: int, lost_ms: int = 0) -> Change:
    """Replace an item by `draft`, because another rule applies to the reviewer's edits. Raises as `decide` does."""
    item = find_item(record, decision.item_id)
    by = check_decision(record, item, decision, "ask_again", now_ms - lost_ms)
    previews = closing.keep_preview(item, draft.tool.args)
    draft = draft.model_copy(update={"previews": previews}) if previews else draft
    replacement = closing.want_preview(record, freeze_item(draft, item.item_id, record.binding, now_ms), now_ms)
    # Escalations and frozen time count from now, not from the suspension's start.
    inquiries = tuple(inquiry.model_copy(update={"left_ms": None}) for inquiry in item.inquiries)
    kept = {"held_ms": now_ms - record.created_at_ms, "held_to_ms": now_ms, "inquiries": inquiries}
    kept |= {"drill": item.drill, "asked": item.asked, "revises": item.revises}
    kept |= {"invitations": item.invitations}
    kept |= {"requested": item.requested or digest_json(item.tool.args)}
    replacement = replacement.model_copy(update=kept)
    data = closing.describe_item(record, replacement) | {"rule_id": draft.rule_id, "reason": draft.prompt.reason}
    asked = Event(EventType.ASKED_AGAIN, {**data, "by": by.model_dump(mode="json")})
    return closing.put_item(record, replacement, (asked,), now_ms)


def report(record: SuspensionRecord, key: str, holder: str, result: ToolResult, now_ms: int) -> Change:
    """Close a call in doubt with the late result of the worker that started it; otherwise change nothing."""
    check_step(record, "report")
    for item in record.items:
        doubt = item.doubt
        if item.open and doubt is not None and (doubt.idempotency_key, doubt.holder) == (key, holder):
            value: JsonObject = {"choice": "reported", "result": result.model_dump(mode="json")}
            by = Actor(id=holder, kind=ActorKind.WORKER, channel="worker")
            preset = PresetOutcome(verdict=Verdict.ANSWERED, by=by, value=value)
            closed = closing.close_with_preset(record, item, preset, now_ms)
            data = {"suspension_id": record.id, "item_id": item.item_id, "worker": holder, "success": result.success}
            return closing.put_item(record, closed, (Event(EventType.RESULT_REPORTED, data),), now_ms)
    return Change(record)


def extend(record: SuspensionRecord, item_id: str, until_ms: int, by: Actor, now_ms: int, lost_ms: int = 0) -> Change:
    """Extend an item's deadline, which gives it a new digest, as far as its terms allow; raises as `decide` does."""
    item = find_item(record, item_id)
    check_change(record, item, "extend", now_ms - lost_ms)
    by = check_reviewer(record, item, by)
    if not item.terms.deadline_at_ms < until_ms <= item.terms.extend_until_ms:
        latest_ms = item.terms.extend_until_ms
        limit = f"Choose a later one, up to {iso_utc(latest_ms)}." if latest_ms else "Its terms allow no extension."
        raise InvalidInput(f"The deadline of {item.tool.name} cannot be moved to {iso_utc(until_ms)}. {limit}")
    extended = closing.change_terms(record, item, {"deadline_at_ms": until_ms})
    data = {**closing.describe_item(record, extended), "by": by.model_dump(mode="json")}
    return closing.put_item(record, extended, (Event(EventType.DEADLINE_EXTENDED, data),), now_ms)


def cancel(record: SuspensionRecord, by: Actor, reason: str | None, now_ms: int) -> Change:
    """End the run for good. Open items stay undecided, and further writes of its worker are refused."""
    if record.status is Status.CANCELLED:
        return Change(record)
    check_step(record, "cancel")
    end = RunEnd(status=RunStatus.CANCELLED, error=f"Cancelled by {by.id}" + (f": {reason}" if reason else ""))
    items = tuple(closing.queue_outcome(record, item, by) if item.open else item for item in record.items)
    cancelled = closing.stop(record.model_copy(update={"items": items}), Status.CANCELLED, end, now_ms)
    in_flight = [intent.call_id for intent in record.journal if intent.result is None]
    if record.resume.mode == "poll":
        in_flight = [item.call_id for item in record.items if item.permit is not None and item.permit.report is None]
    data: JsonObject = {"by": by.model_dump(mode="json"), "reason": reason, "calls_in_flight": [*in_flight]}
    unanswered = [closing.describe_unanswered(item) for item in record.items if item.open]
    data |= {"suspension_id": record.id, "unanswered": [*unanswered]} if unanswered else {}
    return Change(cancelled, (Event(EventType.RUN_CANCELLED, data),))


def find_item(record: SuspensionRecord, item_id: str) -> Item:
    """Return the item of that id; raises `NotFound`."""
    for item in record.items:
        if item.item_id == item_id:
            return item
    raise NotFound(f"Suspension {record.id} has no item {item_id!r}. Read the suspension to see its items.")


def _describe_reason(item: Item) -> str | None:
    reason = item.prompt.reason
    return redact(item.tool.args, None, item.terms.secrets).scrub(reason) if reason else reason


def void_decisions(record: SuspensionRecord, inactive: Collection[str], now_ms: int) -> Change:
    """Remove what these people decided and confirmed from open items; who is active again later may do so anew."""
    check_step(record, "void_decisions")
    events: tuple[Event, ...] = ()
    for item in record.items:
        lost = tuple(
            decision
            for decision in list_current(item)
            if decision.by.kind is ActorKind.HUMAN and _answers_for(decision) in inactive
        )
        confirmed = item.confirmation if item.confirmation and item.confirmation.by.id in inactive else None
        if not item.open or not (lost or confirmed):
            continue
        voided = void(record, item, lost, confirmed, now_ms)
        record, events = voided.record, events + voided.events
    return Change(record, events)


def _answers_for(decision: Decision) -> str:
    """Return whose account a decision needs: its author's, or that of who invited somebody outside."""
    return decision.invited.by if decision.invited is not None else decision.by.id


def void(
    record: SuspensionRecord,
    item: Item,
    lost: tuple[Decision, ...],
    confirmed: Confirmation | None,
    now_ms: int,
    *,
    outdated: bool = False,
) -> Change:
    """Take decisions, and a confirmation if given, out of an open item; `outdated` if a new preview voids them."""
    changed = _take_out(item, lost, now_ms, retracted=False, outdated=outdated)
    events: tuple[Event, ...] = ()
    if confirmed is not None:
        changed = changed.model_copy(update={"confirmation": None})
        events += (_describe_unconfirmed(record, item, confirmed),)
    events += tuple(_describe_lost(record, item, decision, EventType.DECISION_VOIDED) for decision in lost)
    if outdated:
        events = tuple(event._replace(data={**event.data, "outdated": True}) for event in events)
    return closing.put_item(record, changed, events, now_ms)


def retract(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int, lost_ms: int = 0) -> Change:
    """Take back one's decision before it takes effect; its author may decide anew. Once is enough.

    Raises `Conflict` without a decision to take back, or as `decide` does for an item that is closed or late.
    """
    item = find_item(record, item_id)
    undoable = item.undoable
    if undoable is not None and undoable.decision.by.id == by.id and now_ms < undoable.until_ms:
        check_step(record, "retract")
    else:
        check_change(record, item, "retract", now_ms - lost_ms)
    check_person(by)
    own = tuple(decision for decision in list_current(item) if decision.by.id == by.id)
    if not own and any(decision.retracted and decision.by.id == by.id for decision in item.voided):
        return Change(record)
    if not own:
        raise Conflict("You have no decision on this item to take back. Nothing was changed.")
    events = tuple(_describe_lost(record, item, decision, EventType.DECISION_RETRACTED) for decision in own)
    return closing.put_item(record, _take_out(item, own, now_ms, retracted=True), events, now_ms)


def replace_own(
    record: SuspensionRecord, item_id: str, replaced: str, by: Actor, now_ms: int, lost_ms: int = 0
) -> Change:
    """Take back the decision of this id, which its author makes anew in the same commit; raises as `retract` does."""
    item = find_item(record, item_id)
    if (replaced, by.id) not in [(decision.id, decision.by.id) for decision in item.current]:
        raise Conflict("The decision that you change no longer counts. Nothing was changed; read the item again.")
    return retract(record, item_id, by, now_ms, lost_ms)


def find_own(item: Item, person: str) -> Decision | None:
    """Return a person's decision that counts, which they may change; None while one takes effect."""
    own = (decision for decision in item.current if decision.by.id == person)
    return next(own, None) if item.open and item.undoable is None else None


def without_own(item: Item, own: Decision, now_ms: int) -> Item:
    """Return the item as it is once a decision was taken back."""
    return _take_out(item, (own,), now_ms, retracted=True)


def list_made(item: Item) -> tuple[Decision, ...]:
    """Return the decisions that count, and the one that takes effect soon."""
    return (*item.decisions, item.undoable.decision) if item.undoable is not None else item.decisions


def list_current(item: Item) -> tuple[Decision, ...]:
    """Return the decisions of the current stage. Those of an earlier one stand; the start of the call checks them."""
    return tuple(decision for decision in list_made(item) if decision.stage == item.terms.stage)


def list_statements(item: Item) -> tuple[Decision | Confirmation, ...]:
    """Return the decisions and the confirmation, which count only while their authors are active."""
    return (*list_made(item), item.confirmation) if item.confirmation is not None else list_made(item)


def _take_out(item: Item, lost: tuple[Decision, ...], now_ms: int, *, retracted: bool, outdated: bool = False) -> Item:
    """Return the item without these decisions, which it keeps as ones that no longer count."""
    voided = tuple(
        VoidedDecision(
            id=decision.id,
            action=decision.action,
            by=decision.by,
            at_ms=decision.at_ms,
            voided_at_ms=now_ms,
            retracted=retracted,
            outdated=outdated,
        )
        for decision in lost
    )
    kept = tuple(decision for decision in item.decisions if decision not in lost)
    undoable = item.undoable if item.undoable is not None and item.undoable.decision not in lost else None
    return item.model_copy(update={"decisions": kept, "voided": (*item.voided, *voided), "undoable": undoable})


def _describe_unconfirmed(record: SuspensionRecord, item: Item, lost: Confirmation) -> Event:
    data = {"suspension_id": record.id, "item_id": item.item_id, "decision_id": lost.id, "action": "confirm"}
    return Event(EventType.DECISION_VOIDED, data | lost.model_dump(mode="json", include={"by"}))


def _describe_lost(record: SuspensionRecord, item: Item, decision: Decision, type_: EventType) -> Event:
    data = {"suspension_id": record.id, "item_id": item.item_id, "decision_id": decision.id}
    return Event(type_, data | decision.model_dump(mode="json", include={"action", "by"}))
