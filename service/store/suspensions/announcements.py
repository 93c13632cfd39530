"""Announcements of a change for webhook endpoints; saved in the commit of the change, if any endpoint exists."""

import json
from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256

from sayso.core.records.base import Immutable
from sayso.core.records.items import Item
from sayso.core.records.suspensions import RunStatus, Status, SuspensionRecord
from service.store.connection.commits import Commit, Update
from service.store.keys import TenantKeys

_quote = json.JSONEncoder(ensure_ascii=False).encode


class WebhookEvent(StrEnum):
    """The types of event that endpoints receive."""

    ITEM_CREATED = "item.created"
    ITEM_DECIDED = "item.decided"
    ITEM_ESCALATED = "item.escalated"
    ITEM_WITHDRAWN = "item.withdrawn"
    RUN_SUSPENDED = "run.suspended"
    RUN_RESUMED = "run.resumed"
    RUN_FINISHED = "run.finished"


class Announcement(Immutable):
    """One event of an item or a run. Its content is read from the record when it is sent to endpoints."""

    id: str
    type: WebhookEvent
    suspension_id: str
    item_id: str = ""
    at_ms: int


def announce(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Save the announcements of a change if any endpoint exists."""
    for announcement in list_announcements(update.before, update.after, update.change.following):
        commit.write_if(keys.endpoints, "ZADD", keys.announcements, update.at_ms, announcement)


def list_announcements(
    before: SuspensionRecord | None, after: SuspensionRecord, following: SuspensionRecord | None
) -> Iterator[str]:
    """Yield the announcements of a change, as stored; none of a drill. The same change yields the same ids."""
    if any(item.drill is not None for item in after.items):
        return
    for type_, item_id in _list_item_events(before, after):
        yield _pack(after, type_, item_id)
    if following is not None:
        for type_, item_id in _list_item_events(None, following):
            yield _pack(following, type_, item_id)
    last = following or after
    run_event = _find_run_event(before, last)
    if run_event is not None:
        yield _pack(last, run_event)


def list_event_ids(record: SuspensionRecord) -> Iterator[str]:
    """Yield the ids that announcements of this record's changes have or could have."""
    places = ("", *(item.item_id for item in record.items))
    for version in range(1, record.version + 1):
        for type_ in WebhookEvent:
            yield from (_name_event(record.id, version, type_, place) for place in places)


def _list_item_events(before: SuspensionRecord | None, after: SuspensionRecord) -> Iterator[tuple[WebhookEvent, str]]:
    priors = {item.item_id: item for item in before.items} if before is not None else {}
    pending = after.status is Status.PENDING
    closed = before is not None and before.status is Status.PENDING and not pending
    for item in after.items:
        prior = priors.get(item.item_id)
        if prior is item and not closed:
            continue
        event = _find_item_event(prior, item, pending=pending, closed=closed)
        if event is not None:
            yield event, item.item_id


def _find_item_event(prior: Item | None, item: Item, *, pending: bool, closed: bool) -> WebhookEvent | None:
    if prior is None or (item.open and item.tool != prior.tool):
        return WebhookEvent.ITEM_CREATED if item.open and pending else None
    if not prior.open:
        return None
    if not item.open:
        return WebhookEvent.ITEM_DECIDED
    if closed:
        return WebhookEvent.ITEM_WITHDRAWN
    return WebhookEvent.ITEM_ESCALATED if item.escalated > prior.escalated else None


def _find_run_event(before: SuspensionRecord | None, last: SuspensionRecord) -> WebhookEvent | None:
    status, was = last.run_status, before.run_status if before is not None else None
    if status is was:
        return None
    if status.ended:
        return WebhookEvent.RUN_FINISHED if was is None or not was.ended else None
    if status is RunStatus.SUSPENDED:
        return WebhookEvent.RUN_SUSPENDED if last.status is Status.PENDING else None
    resumes = before is not None and was is RunStatus.SUSPENDED and before.receipt.leased_at_ms is None
    return WebhookEvent.RUN_RESUMED if resumes and before is not None and _asked(before) else None


def _asked(record: SuspensionRecord) -> bool:
    """Return whether the run waited, rather than being decided by a rule at once."""
    outcomes = (item.outcome for item in record.items)
    return any(outcome is None or outcome.at_ms > record.created_at_ms for outcome in outcomes)


def _pack(record: SuspensionRecord, type_: WebhookEvent, item_id: str = "") -> str:
    event_id = _name_event(record.id, record.version, type_, item_id)
    return (
        f'{{"id":"{event_id}","type":"{type_.value}","suspension_id":{_quote(record.id)},'
        f'"item_id":{_quote(item_id)},"at_ms":{record.updated_at_ms}}}'
    )


def _name_event(suspension_id: str, version: int, type_: WebhookEvent, item_id: str) -> str:
    return f"evt_{sha256(f'{suspension_id} {version} {type_.value} {item_id}'.encode()).hexdigest()[:32]}"
