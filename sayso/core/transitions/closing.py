"""Transitions that close an item with its outcome, and a suspension with its last item.

Here is also what masks the secrets that people typed in what agents, models and tools report afterwards.
"""

from collections.abc import Mapping

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import COVERED, Actor, Confirmation, Decision, DecisionAction, Outcome, Verdict
from sayso.core.records.deliveries import CardDelivery
from sayso.core.records.envelopes import RequestedChanges
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item, PresetOutcome, digest_item, final_args
from sayso.core.records.previews import Preview, PreviewRequest, find_preview
from sayso.core.records.suspensions import DUE_AGAIN_MS, Change, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.core.records.terms import REFUSING
from sayso.core.text.redaction import Redacted, redact
from sayso.core.transitions.permits import next_lapse, shows_effect
from sayso.core.transitions.states import count_failed

END_EVENTS = {
    RunStatus.COMPLETED: EventType.RUN_COMPLETED,
    RunStatus.DEGRADED: EventType.RUN_DEGRADED,
    RunStatus.FAILED: EventType.RUN_FAILED,
    RunStatus.CANCELLED: EventType.RUN_CANCELLED,
}

_VERDICTS = {
    DecisionAction.APPROVE: Verdict.APPROVED,
    DecisionAction.DENY: Verdict.DENIED,
    DecisionAction.VALUE: Verdict.ANSWERED,
    DecisionAction.FAIL: Verdict.FAILED,
}


def args_of(item: Item, decision: Decision) -> JsonObject:
    """Return the arguments to run if this decision closes the item."""
    return final_args(item, edited=decision.args, value=decision.value)


def close_item(record: SuspensionRecord, item: Item, decision: Decision, now_ms: int) -> Item:
    """Return the item with the outcome that `decision` gives it."""
    edits = decision.action is DecisionAction.APPROVE and decision.args is not None
    args = args_of(item, decision) if edits or decision.action is DecisionAction.VALUE else None
    verdict = _VERDICTS[decision.action]
    message, changes = decision.message, _join_changes(item, decision)
    if changes is not None:
        message = changes.describe(item.tool.name, decision.message or "")
    elif decision.offer is not None:
        message = " ".join(filter(None, (decision.message, decision.offer.text)))
    preset = PresetOutcome(
        verdict=verdict,
        by=decision.by,
        args=args,
        value=decision.value,
        message=message,
        offer=decision.offer,
        changes=changes,
    )
    return close_with_preset(record, item, preset, now_ms)


def _join_changes(item: Item, decision: Decision) -> RequestedChanges | None:
    """Return the changes that all who deny the item request; None if one of them denies it as it is."""
    if decision.changes is None:
        return None
    requested = [other.changes for other in item.decisions if other.action is DecisionAction.DENY]
    paths: list[str] = []
    for changes in requested:
        if changes is None:
            return None
        paths += changes.paths
    return decision.changes.model_copy(update={"paths": tuple(dict.fromkeys(paths))})


def close_with_preset(record: SuspensionRecord, item: Item, preset: PresetOutcome, now_ms: int) -> Item:
    """Return the item with a preset outcome."""
    args, digest = preset.args, item.digest
    if args is not None:
        digest = digest_item(record.binding, item.item_id, item, args, item.terms)
    outcome = Outcome(
        verdict=preset.verdict,
        args=args if digest != item.digest else None,
        value=preset.value,
        message=preset.message,
        offer=preset.offer,
        changes=preset.changes,
        by=preset.by,
        at_ms=now_ms,
        start_by_ms=preset.start_by_ms or now_ms + item.terms.start_by_s * 1000,
        digest=digest,
    )
    return item.model_copy(update={"outcome": outcome, "undoable": None})


def queue_outcome(record: SuspensionRecord, item: Item, by: Actor) -> Item:
    """Return a closed item with a delivery of its outcome to the requester, where they want it and do not know it."""
    owner, channels = record.run.owner, item.terms.channels
    informed = by.id == owner or any(delivery.person == owner and delivery.proven for delivery in item.deliveries)
    if informed or not (item.terms.notify_requester and channels):
        return item
    queued = CardDelivery(channel=channels[0], person=owner, outcome=True)
    return item.model_copy(update={"deliveries": (*item.deliveries, queued)})


def change_terms(record: SuspensionRecord, item: Item, terms: Mapping[str, object], **update: object) -> Item:
    """Return the open item with other terms, which change its digest, and other fields from `update`."""
    changed = item.terms.model_copy(update=terms)
    digest = digest_item(record.binding, item.item_id, item, item.tool.args, changed)
    return item.model_copy(update={"terms": changed, "digest": digest, **update})


def keep_preview(item: Item, args: JsonObject) -> tuple[Preview, ...]:
    """Return the preview of an edit as that of the item's own arguments, which they become."""
    shown = find_preview(item.previews, args)
    return (shown.model_copy(update={"args": None}),) if shown is not None else ()


def want_preview(record: SuspensionRecord, item: Item, now_ms: int) -> Item:
    """Return an open item with a request for its preview, if the workers can make one and have not."""
    by_workers = record.resume.mode == "worker" or item.drill is not None
    if not (by_workers and item.open and shows_effect(item)) or item.previews:
        return item
    return item.model_copy(update={"preview_request": PreviewRequest(at_ms=now_ms)})


def describe_item(record: SuspensionRecord, item: Item) -> JsonObject:
    """Return what the events of an open item have in common."""
    return {"suspension_id": record.id, "item_id": item.item_id, "deadline_at_ms": item.terms.deadline_at_ms}


def describe_decision(item: Item, decision: Decision) -> JsonObject:
    """Return what the audit trail keeps of a decision: arguments without secrets, rule and possible reviewers."""
    denied = decision.action not in (DecisionAction.APPROVE, DecisionAction.VALUE)
    secrets = redact(item.tool.args if denied else args_of(item, decision), None, item.terms.secrets)
    data: JsonObject = {"args": secrets.args, **_describe_rule(item)}
    if decision.grant_id:
        data["grant_id"] = decision.grant_id
    if decision.suspends:
        data["suspends"] = [*decision.suspends]
    if decision.changes is not None:
        data["changes"] = decision.changes.model_dump(mode="json")
    if decision.message is not None:
        data["message"] = secrets.scrub(decision.message)
    if decision.action is DecisionAction.VALUE:
        given = secrets.args.get(item.target_arg) if item.target_arg is not None else decision.value
        data["value"] = secrets.scrub_json(given)
    return data


def describe_confirmation(item: Item, confirmation: Confirmation, args: JsonObject) -> JsonObject:
    """Return what the audit trail keeps of a confirmation: the arguments without secrets, the reason and the rule."""
    secrets = redact(args, None, item.terms.secrets)
    message = secrets.scrub(confirmation.message) if confirmation.message is not None else None
    return {"args": secrets.args, "message": message, **_describe_rule(item)}


def describe_unanswered(item: Item) -> JsonObject:
    """Return what the audit trail keeps of an item that ends without a decision."""
    args = redact(item.tool.args, None, item.terms.secrets).args
    return {"item_id": item.item_id, "tool_name": item.tool.name, "args": args, **_describe_rule(item)}


def _describe_rule(item: Item) -> JsonObject:
    terms = item.terms
    return {
        "rule_id": terms.rule_id,
        "rule_version": terms.rule_version,
        "reviewers": [*terms.reviewers],
        "quorum": {"approve": terms.quorum.approve, "deny": terms.quorum.deny},
        **terms.model_dump(include={*REFUSING, "confirm_by"}),
    }


def put_item(record: SuspensionRecord, item: Item, events: tuple[Event, ...], now_ms: int) -> Change:
    """Return the change that replaces an item; the last to close, with coverage `any` the first, decides all."""
    were_open = {other.item_id for other in record.items if other.open}
    items = record.with_item(item).items
    if not item.open and record.resume.coverage == "any":
        message = f"Closed because {item.tool.name} ({item.item_id}) was decided first, and one decision is enough."
        rest = PresetOutcome(verdict=Verdict.DENIED, by=COVERED, message=message)
        items = tuple(close_with_preset(record, other, rest, now_ms) if other.open else other for other in items)
    items = tuple(
        queue_outcome(record, other, other.outcome.by) if other.outcome and other.item_id in were_open else other
        for other in items
    )
    record = record.model_copy(update={"items": items, "updated_at_ms": now_ms})
    if any(other.open for other in items):
        return Change(record.model_copy(update={"due_at_ms": next_due(record)}), events)
    return close_suspension(record, (*events, describe_decided(record)), now_ms)


def describe_decided(record: SuspensionRecord) -> Event:
    """Return the event of a decided suspension."""
    covered = [item for item in record.items if item.outcome and item.outcome.by == COVERED]
    ids, unanswered = [item.item_id for item in covered], [describe_unanswered(item) for item in covered]
    closed: JsonObject = {"closed_with_it": [*ids], "unanswered": [*unanswered]} if covered else {}
    data: JsonObject = {"suspension_id": record.id, "approved": record.approved}
    return Event(EventType.DECIDED, data | closed)


def close_suspension(record: SuspensionRecord, events: tuple[Event, ...], now_ms: int) -> Change:
    """Return the change that decides the suspension.

    A worker's run is put on the ready list, and is due again soon. A client's run is due when its permits lapse.
    """
    if record.resume.mode == "poll":
        receipt = record.receipt.model_copy(update={"decided_at_ms": now_ms})
        record = record.model_copy(update={"status": Status.DECIDED, "receipt": receipt})
        return Change(record.model_copy(update={"due_at_ms": next_lapse(record, now_ms)}), events)
    receipt = record.receipt.model_copy(update={"decided_at_ms": now_ms, "enqueued_at_ms": now_ms})
    update = {"status": Status.DECIDED, "receipt": receipt, "due_at_ms": now_ms + DUE_AGAIN_MS}
    return Change(record.model_copy(update=update), events, ready=True)


def next_due(record: SuspensionRecord) -> int | None:
    """Return the next due time of a pending suspension, or None without open items."""
    moments: list[int] = []
    for item in record.items:
        if item.undoable is not None:
            moments.append(item.undoable.until_ms)
        elif item.open:
            begun_ms, steps = record.created_at_ms + item.held_ms, item.terms.escalate[item.escalated :]
            moments += [item.terms.deadline_at_ms, *item.terms.remind_at_ms[item.reminded :][:1]]
            moments += [begun_ms + step.after_s * 1000 for step in steps[:1]]
    return min(moments, default=None)


def note_resumed(change: Change, now_ms: int) -> Change:
    """Return the change with the event `run_resumed` before all others, once. A new run has `run_started` instead."""
    record = change.record
    if record.receipt.resumed_at_ms is not None or not record.items:
        return change
    receipt = record.receipt.model_copy(update={"resumed_at_ms": now_ms, "error": None})
    record = record.model_copy(update={"receipt": receipt})
    verdicts = {item.item_id: item.outcome.verdict for item in record.items if item.outcome is not None}
    data = {"approved": record.approved, "suspension_id": record.id, "verdicts": verdicts}
    resumed = Event(EventType.RUN_RESUMED, data)
    return Change(record, (resumed, *change.events), change.following, change.state, change.ready)


def follow(record: SuspensionRecord) -> dict[str, object]:
    """Return the fields that the run's next suspension takes over."""
    kept = {"typed": tuple(sorted(list_typed(record))), "notes": record.waiting_notes}
    return {"previous_id": record.id, "failed_calls": count_failed(record), **kept}


def stop(record: SuspensionRecord, status: Status, end: RunEnd, now_ms: int) -> SuspensionRecord:
    """Return the record of a suspension whose run was cancelled or failed."""
    return record.model_copy(update={"status": status, "end": end, "updated_at_ms": now_ms, "due_at_ms": None})


def end_suspension(record: SuspensionRecord, now_ms: int, update: dict[str, object]) -> SuspensionRecord:
    """Return the record of a suspension whose run has continued or ended."""
    receipt = record.receipt.model_copy(update={"settled_at_ms": now_ms})
    ended = {"status": Status.RESUMED, "journal": (), "due_at_ms": None, "receipt": receipt}
    return record.model_copy(update={**ended, **update})


_CONTENTS = ("text", "output", "error", "result", "message", "reason")
"""The fields of events that hold what agents, models, tools and people wrote."""


def list_typed(record: SuspensionRecord) -> frozenset[str]:
    """Return the secrets that people gave, as a value or in an edit, in this suspension or an earlier one."""
    secrets = frozenset(record.typed)
    for item in record.items:
        if item.terms.secrets and item.doubt is None:
            for given in (item.outcome, *item.decisions):
                if given is not None:
                    args: JsonObject = dict(given.args or {})
                    if item.target_arg is not None and given.value is not None:
                        args[item.target_arg] = given.value
                    secrets |= redact(args, None, item.terms.secrets).secrets
    return secrets - {""}


def mask_end(record: SuspensionRecord) -> RunEnd | None:
    """Return how the run ended, with the secrets masked that people typed."""
    typed = Redacted({}, list_typed(record))
    if record.end is None or not typed.masked:
        return record.end
    error = typed.scrub(record.end.error) if record.end.error is not None else None
    return record.end.model_copy(update={"result": typed.scrub_json(record.end.result), "error": error})


def mask_contents(record: SuspensionRecord, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Return the events with the record's secrets masked in what agents, models and tools wrote; other fields stay."""
    secrets = list_typed(record)
    for item in record.items:
        if item.terms.secrets:
            secrets |= redact(item.tool.args, None, item.terms.secrets).secrets
    masking = Redacted({}, secrets)
    return tuple(_mask_event(event, masking) for event in events) if masking.masked else events


def _mask_event(event: Event, secrets: Redacted) -> Event:
    masked = {name: secrets.scrub_json(event.data[name]) for name in _CONTENTS if name in event.data}
    return event._replace(data={**event.data, **masked}) if masked else event
