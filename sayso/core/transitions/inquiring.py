"""Transitions before a decision: a reviewer asks the requester, or tells the others that they handle an item."""

from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import (
    CLAIM_MS,
    LONGEST_TEXT,
    MOST_INQUIRIES,
    Claim,
    Inquiry,
    find_claim,
    find_open_inquiry,
)
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.closing import change_terms, describe_item, put_item
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.decision_checks import check_change, check_item_open, check_reviewer
from sayso.core.transitions.legal import check_step
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound


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

    Raises `Conflict` while another question waits for its answer, `InvalidInput` for a bad text, or as `decide` does.

    If the terms say so, the deadline waits for the answer, as far as it can be extended.
    """
    item = find_item(record, item_id)
    if any((inquiry.id, inquiry.by.id) == (inquiry_id, by.id) for inquiry in item.inquiries):
        return Change(record)
    check_change(record, item, "ask_requester", now_ms - lost_ms)
    by = check_reviewer(record, item, by)
    text = check_text(text)
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
