"""Transitions from a new suspension to a decided one: suspend, decide, extend, cancel.

`sayso/transitions/timing.py` has those that time causes. `now_ms` is the store server's time.
"""

from sayso.canonical_json import JsonObject, canonical_json
from sayso.clock import iso_utc
from sayso.errors import (
    AlreadyDecided,
    DeadlinePassed,
    IdempotencyConflict,
    IllegalTransition,
    InvalidInput,
    NotAllowed,
    NotFound,
    SelfApproval,
    StaleDigest,
)
from sayso.records.decisions import Actor, ActorKind, Decision, DecisionAction, Verdict
from sayso.records.events import Event, EventType
from sayso.records.items import Answer, Item, ItemDraft, PresetOutcome, digest_item, freeze_item
from sayso.records.suspensions import Change, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.records.tool_calls import ToolResult
from sayso.transitions.closing import (
    args_of,
    close_item,
    close_suspension,
    close_with_preset,
    describe_decided,
    describe_decision,
    describe_unanswered,
    next_due,
    put_item,
)
from sayso.transitions.table import check_step
from sayso.transitions.timing import expire


def suspend(new: SuspensionRecord, drafts: tuple[ItemDraft, ...], now_ms: int) -> Change:
    """Return a new suspension with its items, or a run that is ready to start when there are none.

    An item whose deadline has passed at once (as in headless runs) gets its fallback.
    """
    binding = new.binding
    items = tuple(freeze_item(draft, f"i{place}", binding, now_ms) for place, draft in enumerate(drafts, start=1))
    run = new.run if new.run.started_at_ms else new.run.model_copy(update={"started_at_ms": now_ms})
    update = {"items": items, "run": run, "status": Status.PENDING, "created_at_ms": now_ms, "updated_at_ms": now_ms}
    record = new.model_copy(update=update)
    if not items:
        started = Event(
            type=EventType.RUN_STARTED,
            data={"agent": run.agent, "claimed_title": run.title, "owner": run.owner},
        )
        return close_suspension(record, (started,), now_ms)
    decided = [
        close_with_preset(record, item, draft.preset, now_ms) if draft.preset else item
        for item, draft in zip(items, drafts, strict=True)
    ]
    record = record.model_copy(update={"items": tuple(decided)})
    paused = (_run_paused(record),)
    if not any(item.open for item in record.items):
        return close_suspension(record, (*paused, describe_decided(record)), now_ms)
    waiting = record.model_copy(update={"due_at_ms": next_due(record)})
    expired = expire(waiting, now_ms)
    return Change(expired.record, paused + expired.events, ready=expired.ready)


def decide(record: SuspensionRecord, decision: Decision, now_ms: int, lost_ms: int = 0) -> Change:
    """Record a reviewer's decision on an item. A met quorum closes the item, and the last item the suspension.

    `lost_ms` is frozen time, which does not count towards the deadline. The same decision again changes nothing.

    Raises `AlreadyDecided`, `DeadlinePassed`, `StaleDigest`, `NotAllowed`, `SelfApproval`, `InvalidInput`,
    `IdempotencyConflict` or `NotFound`.
    """
    item = find_item(record, decision.item_id)
    if _is_repeat(item, decision):
        return Change(record)
    _check_decision(record, item, decision, "decide", now_ms - lost_ms)
    item = item.model_copy(update={"decisions": (*item.decisions, decision)})
    if _quorum_met(item, decision):
        item = close_item(record, item, decision, now_ms)
    recorded = Event(type=EventType.DECISION_RECORDED, data=_decision_data(record, item, decision))
    return put_item(record, item, (recorded,), now_ms)


def ask_again(record: SuspensionRecord, decision: Decision, draft: ItemDraft, now_ms: int, lost_ms: int = 0) -> Change:
    """Replace an item by `draft`, because another rule applies to the reviewer's edits.

    Earlier decisions on the item do not count. Raises as `decide` does.
    """
    item = find_item(record, decision.item_id)
    _check_decision(record, item, decision, "ask_again", now_ms - lost_ms)
    replacement = freeze_item(draft, item.item_id, record.binding, now_ms)
    # Escalations and frozen time count from now, not from the suspension's start.
    replacement = replacement.model_copy(update={"held_ms": now_ms - record.created_at_ms, "held_to_ms": now_ms})
    data: JsonObject = {
        "suspension_id": record.id,
        "item_id": item.item_id,
        "by": decision.by.model_dump(mode="json"),
        "rule_id": draft.rule_id,
        "reason": draft.prompt.reason,
        "deadline_at_ms": replacement.terms.deadline_at_ms,
    }
    return put_item(record, replacement, (Event(type=EventType.ASKED_AGAIN, data=data),), now_ms)


def report(record: SuspensionRecord, key: str, holder: str, result: ToolResult, now_ms: int) -> Change:
    """Close a call in doubt with the late result of the worker that started it; otherwise change nothing."""
    check_step(record, "report")
    for item in record.items:
        doubt = item.doubt
        if item.open and doubt is not None and (doubt.idempotency_key, doubt.holder) == (key, holder):
            value: JsonObject = {"choice": "reported", "result": result.model_dump(mode="json")}
            by = Actor(id=holder, kind=ActorKind.WORKER, channel="worker")
            closed = close_with_preset(
                record, item, PresetOutcome(verdict=Verdict.ANSWERED, by=by, value=value), now_ms
            )
            data = {"suspension_id": record.id, "item_id": item.item_id, "worker": holder, "success": result.success}
            return put_item(record, closed, (Event(type=EventType.RESULT_REPORTED, data=data),), now_ms)
    return Change(record)


def extend(record: SuspensionRecord, item_id: str, until_ms: int, by: Actor, now_ms: int, lost_ms: int = 0) -> Change:
    """Extend an item's deadline as far as its terms allow. A new deadline gives a new digest.

    Raises as `decide` does, and `InvalidInput` for a moment outside of these limits.
    """
    item = find_item(record, item_id)
    _check_open(record, item)
    check_step(record, "extend")
    _check_in_time(item, now_ms - lost_ms)
    _check_reviewer(record, item, by)
    if not item.terms.deadline_at_ms < until_ms <= item.terms.extend_until_ms:
        latest_ms = item.terms.extend_until_ms
        limit = f"Choose a later one, up to {iso_utc(latest_ms)}." if latest_ms else "Its terms allow no extension."
        raise InvalidInput(f"The deadline of {item.tool.name} cannot be moved to {iso_utc(until_ms)}. {limit}")
    terms = item.terms.model_copy(update={"deadline_at_ms": until_ms})
    digest = digest_item(record.binding, item_id, item.tool, item.tool.args, item.target_arg, terms)
    data = {
        "suspension_id": record.id,
        "item_id": item_id,
        "deadline_at_ms": until_ms,
        "by": by.model_dump(mode="json"),
    }
    extended = item.model_copy(update={"terms": terms, "digest": digest})
    return put_item(record, extended, (Event(type=EventType.DEADLINE_EXTENDED, data=data),), now_ms)


def cancel(record: SuspensionRecord, by: Actor, reason: str | None, now_ms: int) -> Change:
    """End the run for good. Open items stay undecided, and further writes of its worker are refused."""
    if record.status is Status.CANCELLED:
        return Change(record)
    check_step(record, "cancel")
    error = f"Cancelled by {by.id}" + (f": {reason}" if reason else "")
    cancelled = record.model_copy(
        update={
            "status": Status.CANCELLED,
            "updated_at_ms": now_ms,
            "due_at_ms": None,
            "end": RunEnd(status=RunStatus.CANCELLED, error=error),
        }
    )
    in_flight = [intent.call_id for intent in record.journal if intent.result is None]
    if record.resume.mode == "poll":
        in_flight = [item.call_id for item in record.items if item.permit is not None and item.permit.report is None]
    data: JsonObject = {"by": by.model_dump(mode="json"), "reason": reason, "calls_in_flight": [*in_flight]}
    unanswered = [describe_unanswered(item) for item in record.items if item.open]
    data |= {"suspension_id": record.id, "unanswered": [*unanswered]} if unanswered else {}
    return Change(cancelled, (Event(type=EventType.RUN_CANCELLED, data=data),))


def check_open(record: SuspensionRecord, now_ms: int) -> None:
    """Raise `AlreadyDecided` or `DeadlinePassed` when an item can no longer be decided or withdrawn."""
    for item in record.items:
        if item.outcome is not None:
            _check_open(record, item)
        elif record.status is Status.PENDING:
            _check_in_time(item, now_ms)


def find_item(record: SuspensionRecord, item_id: str) -> Item:
    """Return the item of that id; raises `NotFound`."""
    for item in record.items:
        if item.item_id == item_id:
            return item
    raise NotFound(f"Suspension {record.id} has no item {item_id!r}. Read the suspension to see its items.")


def describe_outcome(item: Item) -> str:
    """Return a sentence: who decided the item, how and when."""
    outcome = item.outcome
    if outcome is None:
        return "This item is still open."
    reason = f", saying: {outcome.message.removesuffix('.')}" if outcome.message else ""
    return f"{outcome.by.id} {outcome.verdict} this at {iso_utc(outcome.at_ms)}{reason}."


def _run_paused(record: SuspensionRecord) -> Event:
    first = record.items[0]
    items = [
        {
            "item_id": item.item_id,
            "call_id": item.call_id,
            "tool_name": item.tool.name,
            "kind": item.kind,
            "reason": item.prompt.reason,
            "deadline_at_ms": item.terms.deadline_at_ms,
        }
        for item in record.items
    ]
    payload = {"suspension_id": record.id, "items": items}
    data = {"tool_name": first.tool.name, "reason": first.prompt.reason, "payload": payload}
    return Event(type=EventType.RUN_PAUSED, data=data)


def _is_repeat(item: Item, decision: Decision) -> bool:
    for earlier in item.decisions:
        same_key = earlier.idempotency_key is not None and earlier.idempotency_key == decision.idempotency_key
        if earlier.id != decision.id and not (same_key and earlier.by.id == decision.by.id):
            continue
        if _content(earlier) != _content(decision):
            raise IdempotencyConflict(idempotency_key=decision.idempotency_key)
        return True
    return False


def _content(decision: Decision) -> bytes:
    return canonical_json([decision.action, decision.args, decision.value, decision.message, decision.args_digest])


def _check_decision(record: SuspensionRecord, item: Item, decision: Decision, verb: str, now_ms: int) -> None:
    _check_open(record, item)
    check_step(record, verb)
    _check_in_time(item, now_ms)
    if decision.args_digest != item.digest:
        raise StaleDigest(digest=item.digest)
    _check_reviewer(record, item, decision.by)
    _check_answer(item, decision)


def _check_open(record: SuspensionRecord, item: Item) -> None:
    if item.outcome is not None:
        raise AlreadyDecided(
            f"{describe_outcome(item)} Nothing was changed.",
            decided_by=item.outcome.by.id,
            verdict=item.outcome.verdict,
            decided_at_ms=item.outcome.at_ms,
        )
    if record.status is Status.CANCELLED:
        raise IllegalTransition(f"The run was cancelled at {iso_utc(record.updated_at_ms)}. Nothing was changed.")


def _check_in_time(item: Item, now_ms: int) -> None:
    if now_ms >= item.terms.deadline_at_ms:
        raise DeadlinePassed(
            f"The deadline passed at {iso_utc(item.terms.deadline_at_ms)}; the fallback "
            f"'{item.terms.fallback.action}' decides. Nothing was changed.",
            deadline_at_ms=item.terms.deadline_at_ms,
        )


def _check_reviewer(record: SuspensionRecord, item: Item, by: Actor) -> None:
    if by.kind is not ActorKind.HUMAN:
        raise NotAllowed("An agent's key can ask and read, but never decide. Sign in as a reviewer.", kind=by.kind)
    if item.terms.no_self_approval and by.id == record.run.owner:
        raise SelfApproval(owner=record.run.owner)
    if item.terms.reviewers and by.id not in item.terms.reviewers:
        raise NotAllowed(
            f"Only {', '.join(item.terms.reviewers)} can decide this item. Ask one of them.",
            reviewers=list(item.terms.reviewers),
        )
    if any(earlier.by.id == by.id for earlier in item.decisions):
        raise AlreadyDecided("You have already decided on this item; it waits for other reviewers.", decided_by=by.id)


def _check_answer(item: Item, decision: Decision) -> None:
    answer = Answer.EDIT if decision.args is not None else Answer(decision.action)
    if answer not in item.allowed or (answer is Answer.EDIT and decision.action is not DecisionAction.APPROVE):
        allowed = ", ".join(item.allowed)
        raise InvalidInput(f"The answer '{answer}' is not allowed for this item. Choose {allowed}.", allowed=allowed)
    if decision.action is DecisionAction.VALUE and item.choices is not None:
        offered = [canonical_json(choice) for choice in item.choices]
        if canonical_json(decision.value) not in offered:
            raise InvalidInput("The value is not one of the item's choices. Choose one of them.", choices=item.choices)


def _quorum_met(item: Item, decision: Decision) -> bool:
    """Whether enough reviewers agree; approvals agree only on the same arguments."""
    if decision.action is DecisionAction.DENY:
        people = {one.by.id for one in item.decisions if one.action is DecisionAction.DENY}
        return len(people) >= item.terms.quorum.deny
    if item.terms.quorum.approve == 1:
        return True
    args = canonical_json(args_of(item, decision))
    agreeing = {
        one.by.id
        for one in item.decisions
        if one.action is decision.action and canonical_json(args_of(item, one)) == args
    }
    return len(agreeing) >= item.terms.quorum.approve


def _decision_data(record: SuspensionRecord, item: Item, decision: Decision) -> JsonObject:
    return {
        "suspension_id": record.id,
        "item_id": item.item_id,
        "decision_id": decision.id,
        "action": decision.action,
        "by": decision.by.model_dump(mode="json"),
        "message": decision.message,
        "edited": decision.args is not None,
        "digest": decision.args_digest,
        "verdict": item.outcome.verdict if item.outcome else None,
        **describe_decision(item, decision),
    }
