"""Transitions beside decisions: people claim an item, ask its requester, confirm or preview it, or write to its agent.

A note is written once, and delivered once: its delivery is saved with the transcript that has it.
"""

from collections.abc import Iterable

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import (
    Actor,
    Confirmation,
    ConfirmRequest,
    Decision,
    DecisionAction,
    Delegate,
    Verdict,
    is_covered,
)
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import (
    CLAIM_MS,
    LONGEST_TEXT,
    MOST_INQUIRIES,
    Claim,
    Inquiry,
    Item,
    ItemKind,
    PresetOutcome,
    digest_item,
    find_claim,
    find_open_inquiry,
)
from sayso.core.records.previews import Preview, PreviewRequest, find_preview, put_preview, same_args
from sayso.core.records.suspensions import Change, OperatorNote, SuspensionRecord
from sayso.core.text.redaction import Redacted
from sayso.core.transitions.closing import (
    change_terms,
    close_item,
    close_with_preset,
    describe_confirmation,
    describe_item,
    list_typed,
    put_item,
)
from sayso.core.transitions.deciding import find_item, list_current, void
from sayso.core.transitions.decision_checks import (
    check_change,
    check_item_open,
    check_person,
    check_reviewer,
    may_decide,
)
from sayso.core.transitions.legal import check_step
from sayso.core.transitions.permits import is_confirmed, shows_effect
from sayso.core.transitions.quorum import find_args, find_deciding
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound, StaleDigest


def claim(record: SuspensionRecord, item_id: str, by: Actor, now_ms: int, lost_ms: int = 0) -> Change:
    """Claim an item for 15 minutes; raises `Conflict` while another holds it. Others may decide all the same."""
    item = find_item(record, item_id)
    check_change(record, item, "claim", now_ms - lost_ms)
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


def ask_requester(
    record: SuspensionRecord, item_id: str, inquiry_id: str, text: str, by: Actor, now_ms: int, lost_ms: int = 0
) -> Change:
    """Put a reviewer's question to the requester.

    Raises `Conflict` while another question waits for its answer or about an undo, which nobody requested,
    `InvalidInput` for a bad text, or as `decide` does.

    If the terms say so, the deadline waits for the answer, as far as it can be extended.
    """
    item = find_item(record, item_id)
    if any((inquiry.id, inquiry.by.id) == (inquiry_id, by.id) for inquiry in item.inquiries):
        return Change(record)
    check_change(record, item, "ask_requester", now_ms - lost_ms)
    by = check_reviewer(record, item, by)
    text = check_text(text)
    if item.reverses is not None:
        raise Conflict("Nobody requested this undo, so nobody could answer. Comment on the item for your colleagues.")
    waiting = find_open_inquiry(item.inquiries)
    if waiting is not None:
        owner, asker = record.run.owner, waiting.by.id
        raise Conflict(f"{owner} has not answered the question of {asker} yet. Ask again after that.")
    if len(item.inquiries) >= MOST_INQUIRIES:
        raise Conflict(f"{MOST_INQUIRIES} questions were asked about this item. Decide it, or deny it with a reason.")
    terms = item.terms
    waits = terms.deadline_waits and terms.extend_until_ms > terms.deadline_at_ms
    inquiry = Inquiry(
        id=inquiry_id,
        by=by,
        text=text,
        at_ms=now_ms,
        left_ms=terms.deadline_at_ms - now_ms + lost_ms if waits else None,
        escalated=item.escalated,
    )
    update = {"deadline_at_ms": terms.extend_until_ms} if waits else {}
    asked = change_terms(record, item, update, inquiries=(*item.inquiries, inquiry))
    data = {**describe_item(record, asked), "inquiry_id": inquiry_id, "text": text, "by": by.model_dump(mode="json")}
    return put_item(record, asked, (Event(EventType.REQUESTER_ASKED, data),), now_ms)


def answer_inquiry(
    record: SuspensionRecord, item_id: str, inquiry_id: str, text: str, by: Actor, now_ms: int, lost_ms: int = 0
) -> Change:
    """Save the requester's answer to an inquiry; a deadline that waited has the time left that it had.

    The same answer again changes nothing. Raises `NotAllowed` for others than the run's owner, `NotFound` for an
    unknown inquiry, `Conflict` for another answer, and as `decide` where the item is closed or late.
    """
    item = find_item(record, item_id)
    if by.id != record.run.owner:
        raise NotAllowed(f"Only {record.run.owner}, who requested the call, can answer.", owner=record.run.owner)
    inquiry = next((inquiry for inquiry in item.inquiries if inquiry.id == inquiry_id), None)
    if inquiry is None:
        raise NotFound(f"The item {item_id} has no inquiry {inquiry_id!r}. Read the suspension to see its inquiries.")
    text = check_text(text)
    if inquiry.answer == text:
        return Change(record)
    if inquiry.answer is not None:
        raise Conflict("This inquiry was answered before. Nothing was changed.")
    check_change(record, item, "answer_inquiry", now_ms - lost_ms)
    answered = inquiry.model_copy(update={"answer": text, "answered_at_ms": now_ms})
    inquiries = tuple(answered if entry.id == inquiry_id else entry for entry in item.inquiries)
    resumed: dict[str, object] = {}
    if inquiry.left_ms is not None and item.escalated == inquiry.escalated:  # else an escalation has moved the deadline
        resumed["deadline_at_ms"] = min(item.terms.deadline_at_ms, now_ms - lost_ms + inquiry.left_ms)
    saved = change_terms(record, item, resumed, inquiries=inquiries)
    data = {**describe_item(record, saved), "inquiry_id": inquiry_id, "text": text, "by": by.model_dump(mode="json")}
    return put_item(record, saved, (Event(EventType.REQUESTER_ANSWERED, data),), now_ms)


def check_text(text: str) -> str:
    """Return the text of a question or an answer; raises `InvalidInput` for an empty or a long one."""
    text = text.strip()
    if not text or len(text) > LONGEST_TEXT:
        raise InvalidInput(f"A question or an answer has 1 to {LONGEST_TEXT} characters, not {len(text)}.")
    return text


def confirm(
    record: SuspensionRecord,
    item_id: str,
    request: ConfirmRequest,
    confirmation_id: str,
    by: Actor,
    now_ms: int,
    lost_ms: int = 0,
) -> Change:
    """Record that the acting user confirms a call as they saw it, or declines it, which denies it.

    With a met quorum, a confirmed call is approved. The same confirmation again changes nothing. Raises `NotAllowed`
    for anybody else, `StaleDigest` for another version of the call, `Conflict` without one, or as `decide` does.
    """
    item = find_item(record, item_id)
    if item.confirmation is not None and item.confirmation.id == confirmation_id:
        return Change(record)
    check_change(record, item, "confirm", now_ms - lost_ms)
    check_confirmer(record, item, by)
    args = find_args(item)
    if args is None:
        raise Conflict("A reviewer gives a value first. Confirm the call once it has one.")
    digest = digest_version(record, item, args)
    if request.digest != digest:
        raise StaleDigest(digest=digest)
    confirmed = request.action == "confirm"
    if confirmed and is_confirmed(item, args):
        return Change(record)
    if confirmed and request.message is not None:
        raise InvalidInput("Only who declines gives a reason. Omit message, or decline.")
    confirmation = Confirmation(
        id=confirmation_id,
        confirmed=confirmed,
        by=Actor(id=by.id, kind=by.kind, channel=by.channel),
        at_ms=now_ms,
        digest=digest,
        args_digest=digest_json(args),
        message=request.message,
    )
    item = _conclude(record, item.model_copy(update={"confirmation": confirmation}), confirmation, now_ms)
    data = {"suspension_id": record.id, **confirmation.model_dump(mode="json", include={"confirmed", "by", "digest"})}
    data |= {"item_id": item_id, "verdict": item.outcome.verdict if item.outcome is not None else None}
    data |= describe_confirmation(item, confirmation, args)
    return put_item(record, item, (Event(EventType.CONFIRMATION_RECORDED, data),), now_ms)


def check_confirmer(record: SuspensionRecord, item: Item, by: Actor) -> None:
    """Raise `NotAllowed` for anybody but the acting user themselves, whom the terms ask."""
    check_person(by)
    asked = item.terms.confirm_by
    if asked is None:
        raise NotAllowed("This item needs no confirmation; its reviewers decide it.")
    if by.id != asked:
        raise NotAllowed(f"Only {asked} can confirm this call: the agent acts for them.", person=asked)
    if isinstance(by, Delegate) and by.made_by not in ("", by.id) and by.made_at_ms >= record.created_at_ms:
        raise NotAllowed(
            f"{by.made_by} made or reset what you signed in with after this was asked. "
            "Change your password, sign in again, and confirm then.",
            person=by.made_by,
        )


def may_confirm(record: SuspensionRecord, item: Item, by: Actor) -> bool:
    """Return whether this actor is the acting user, whom the terms ask."""
    try:
        check_confirmer(record, item, by)
    except NotAllowed:
        return False
    return True


def digest_version(record: SuspensionRecord, item: Item, args: JsonObject) -> str:
    """Return the digest of the item's call with these arguments, under its terms."""
    return digest_item(record.binding, item.item_id, item, args, item.terms)


def _conclude(record: SuspensionRecord, item: Item, confirmation: Confirmation, now_ms: int) -> Item:
    """Return the item, closed where the confirmation decides it."""
    if not confirmation.confirmed:
        denied = PresetOutcome(verdict=Verdict.DENIED, by=confirmation.by, message=confirmation.message)
        return close_with_preset(record, item, denied, now_ms)
    if not item.terms.quorum.approve and item.kind is ItemKind.APPROVAL:
        approved = PresetOutcome(verdict=Verdict.APPROVED, by=confirmation.by)
        return close_with_preset(record, item, approved, now_ms)
    deciding = find_deciding(item)
    return close_item(record, item, deciding, now_ms) if deciding is not None else item


MOST_NOTES = 20  # the most notes of one suspension


def write_note(record: SuspensionRecord, note_id: str, text: str, by: Actor, now_ms: int) -> Change:
    """Save a person's note to the agent, with typed secrets masked; the same note again changes nothing.

    Raises `NotAllowed` for who may not decide on the run, `InvalidInput` for a bad text, and `Conflict` for too many.
    """
    check_step(record, "write_note")
    if any(note.id == note_id for note in record.notes):
        return Change(record)
    check_writer(record, by)
    text = text.strip()
    if not text or len(text) > LONGEST_TEXT:
        raise InvalidInput(f"A note has 1 to {LONGEST_TEXT} characters, not {len(text)}.")
    if len(record.notes) >= MOST_NOTES:
        raise Conflict(f"The agent has {MOST_NOTES} notes already. Decide, or cancel the run.")
    author = Actor(id=by.id, kind=by.kind, channel=by.channel)
    text = Redacted({}, list_typed(record)).scrub(text)
    note = OperatorNote(id=note_id, by=author, text=text, at_ms=now_ms)
    data = {"suspension_id": record.id, **_describe_note(note), "text": text}
    update = {"notes": (*record.notes, note), "updated_at_ms": now_ms}
    return Change(record.model_copy(update=update), (Event(EventType.NOTE_WRITTEN, data),))


def check_writer(record: SuspensionRecord, by: Actor) -> None:
    """Raise `NotAllowed` unless a person may decide an item of the run that is open, or any without open ones.

    About a run without items may write whose roles cover its agent.
    """
    check_person(by)
    items = [item for item in record.items if item.open] or record.items
    if any(may_decide(record, item, by) for item in items):
        return
    limits = by.decides if isinstance(by, Delegate) else None
    if items or not is_covered(limits, "", record.run.agent, ()):
        named = ", ".join(dict.fromkeys(name for item in items for name in item.deciders)) or "another reviewer"
        raise NotAllowed(f"You may not decide on this run, so you cannot write to its agent. Ask {named}.")


def describe_delivery(note: OperatorNote) -> Event:
    """Return the event that is saved with the state of a run whose transcript has the note."""
    return Event(EventType.NOTE_DELIVERED, _describe_note(note))


def mark_delivered(record: SuspensionRecord, events: Iterable[Event], now_ms: int) -> SuspensionRecord:
    """Return the record with the notes marked whose delivery these events tell."""
    ids = {event.data["note_id"] for event in events if event.type is EventType.NOTE_DELIVERED}
    if not ids:
        return record
    notes = (
        note.model_copy(update={"delivered_at_ms": now_ms}) if note.id in ids and not note.delivered_at_ms else note
        for note in record.notes
    )
    return record.model_copy(update={"notes": tuple(notes)})


def _describe_note(note: OperatorNote) -> JsonObject:
    return {"note_id": note.id, "by": note.by.model_dump(mode="json")}


def request_preview(
    record: SuspensionRecord, item_id: str, args: JsonObject | None, by: Actor, now_ms: int, lost_ms: int = 0
) -> Change:
    """Ask the workers for a preview of the item's arguments, or of edited ones, in place of what was asked before.

    Raises `NotAllowed` for who may not decide on the item, `Conflict` where no worker can preview it, or as
    `decide` does for an item that is closed or late.
    """
    item = find_item(record, item_id)
    check_change(record, item, "request_preview", now_ms - lost_ms)
    by = check_reviewer(record, item, by)
    if not shows_effect(item) or not (record.resume.mode == "worker" or item.drill is not None):
        raise Conflict(f"No worker can preview {item.tool.name}. Decide without a preview.")
    if same_args(args, item.tool.args):
        args = None
    wanted = item.model_copy(update={"preview_request": PreviewRequest(by=by, at_ms=now_ms, args=args)})
    data = {"suspension_id": record.id, "item_id": item.item_id, "by": by.model_dump(mode="json")}
    asked = Event(EventType.PREVIEW_REQUESTED, {**data, "edited": args is not None})
    return put_item(record, wanted, (asked,), now_ms)


def store_preview(record: SuspensionRecord, item_id: str, preview: Preview, now_ms: int) -> Change:
    """Store the preview that was asked for last; one that comes late, or that nobody asked for, changes nothing.

    If it is another one than before, the item gets a new digest, and approvals of its arguments no longer count.
    """
    item = find_item(record, item_id)
    asked = item.preview_request
    if not item.open or asked is None or not same_args(preview.args, asked.args):
        return Change(record)
    check_step(record, "store_preview")
    before = find_preview(item.previews, preview.args)
    update = {"previews": put_preview(item.previews, preview), "preview_request": None}
    stored = change_terms(record, item.model_copy(update=update), {})
    about = {"preview": preview.digest, "edited": preview.args is not None}
    data = {"suspension_id": record.id, "item_id": item.item_id, **about}
    data |= {"error": preview.error} if preview.error is not None else {}
    change = put_item(record, stored, (Event(EventType.PREVIEW_STORED, data),), now_ms)
    if before is not None and before.digest == preview.digest:
        return change
    approvals = _list_approvals(item, preview)
    voided = void(change.record, stored, approvals, item.confirmation, now_ms, outdated=True)
    return voided._replace(events=change.events + voided.events)


def _list_approvals(item: Item, preview: Preview) -> tuple[Decision, ...]:
    approvals = (made for made in list_current(item) if made.action is DecisionAction.APPROVE)
    return tuple(made for made in approvals if same_args(made.args, preview.args))
