"""What a commit saves for webhook endpoints: announcements of a change, and the message that a decision was made."""

import json
from collections.abc import Iterator
from hashlib import sha256
from uuid import UUID

from sayso.core.clock import DAY_MS, iso_utc
from sayso.core.records.base import Immutable
from sayso.core.records.events import WebhookEvent
from sayso.core.records.suspensions import RunStatus, Status, SuspensionRecord
from service.core.store.connection.commits import Commit, Update
from service.core.store.keys import TenantKeys

_quote = json.JSONEncoder(ensure_ascii=False).encode


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
        moved = prior is not None and (item.tool != prior.tool or item.terms.stage > prior.terms.stage)
        if prior is None or (item.open and moved):
            if item.open and pending:
                yield WebhookEvent.ITEM_CREATED, item.item_id
        elif prior.open and not item.open:
            yield WebhookEvent.ITEM_DECIDED, item.item_id
        elif prior.open and closed:
            yield WebhookEvent.ITEM_WITHDRAWN, item.item_id
        elif prior.open and item.escalated > prior.escalated:
            yield WebhookEvent.ITEM_ESCALATED, item.item_id


def _find_run_event(before: SuspensionRecord | None, last: SuspensionRecord) -> WebhookEvent | None:
    status, was = last.run_status, before.run_status if before is not None else None
    if status is was:
        return None
    if status.ended:
        return WebhookEvent.RUN_FINISHED if was is None or not was.ended else None
    if status is RunStatus.SUSPENDED:
        return WebhookEvent.RUN_SUSPENDED if last.status is Status.PENDING else None
    if before is None or was is not RunStatus.SUSPENDED or before.receipt.leased_at_ms is not None:
        return None
    outcomes = (item.outcome for item in before.items)
    waited = any(outcome is None or outcome.at_ms > before.created_at_ms for outcome in outcomes)
    return WebhookEvent.RUN_RESUMED if waited else None  # a run that a rule decided at once never waited


def _pack(record: SuspensionRecord, type_: WebhookEvent, item_id: str = "") -> str:
    event_id = _name_event(record.id, record.version, type_, item_id)
    return (
        f'{{"id":"{event_id}","type":"{type_.value}","suspension_id":{_quote(record.id)},'
        f'"item_id":{_quote(item_id)},"at_ms":{record.updated_at_ms}}}'
    )


def _name_event(suspension_id: str, version: int, type_: WebhookEvent, item_id: str) -> str:
    return f"evt_{sha256(f'{suspension_id} {version} {type_.value} {item_id}'.encode()).hexdigest()[:32]}"


RETRY_FOR_MS = 7 * DAY_MS  # how long after the decision a message is sent
LANE = "lane:"  # before the endpoint in the list of lanes


class Delivery(Immutable):
    """A message, its endpoint, and in `not_before_ms` its next attempt or the end of the current claim.

    `event_id` is the id that the receiver sees, if it differs from the message's own: one event goes to many endpoints.
    Messages with the same `subject` are sent one after the other.
    `reason` says why the last attempt failed.
    """

    id: str
    endpoint_id: str
    body: str
    until_ms: int
    event_id: str = ""
    type: str = ""
    subject: str = ""
    created_at_ms: int = 0
    tries: int = 0
    not_before_ms: int = 0
    status: int = 0
    reason: str = ""
    tried_at_ms: int = 0
    ended: str | None = None
    ended_at_ms: int | None = None

    @property
    def message_id(self) -> str:
        return self.event_id or self.id


def request_id_of(suspension_id: str) -> str:
    """Return the UUID of a suspension as a request."""
    return str(UUID(hex=suspension_id.removeprefix("sus_")))


def find_suspension_id(message: Delivery) -> str:
    """Return the suspension that a message is about."""
    return message.subject or f"sus_{UUID(json.loads(message.body)['request_id']).hex}"


def closed_at_ms(record: SuspensionRecord) -> int | None:
    """Return when a record with one item got its outcome or was cancelled; None while pending."""
    outcome = record.items[0].outcome
    if outcome is not None:
        return outcome.at_ms
    return record.updated_at_ms if record.status is Status.CANCELLED else None


def draft_message(before: SuspensionRecord | None, after: SuspensionRecord) -> Delivery | None:
    """Return the message for the change from `before` to `after`, or None where no endpoint waits for one."""
    endpoint_id = after.resume.endpoint_id
    was_open = before is None or before.status is Status.PENDING
    if endpoint_id is None or not after.resume.notifies or not was_open or after.status is Status.PENDING:
        return None
    at_ms = closed_at_ms(after) or after.updated_at_ms
    event_id = str(UUID(bytes=sha256(f"{after.id} resolved".encode()).digest()[:16], version=5))
    body = {
        "id": event_id,
        "type": "request.resolved",
        "instance_id": endpoint_id,
        "request_id": request_id_of(after.id),
        "created_at": iso_utc(at_ms),
    }
    return Delivery(
        id=event_id,
        endpoint_id=endpoint_id,
        body=json.dumps(body, separators=(",", ":")),
        until_ms=at_ms + RETRY_FOR_MS,
        type="request.resolved",
        created_at_ms=at_ms,
    )


def notify_endpoint(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Save the message for the endpoint that waits for the decision; a new suspension needs an endpoint that exists."""
    if update.before is None and update.after.resume.endpoint_id is not None:
        commit.expect_absent(keys.gone(update.after.resume.endpoint_id))
    if (message := draft_message(update.before, update.after)) is not None:
        write_message(commit, keys, message, update.at_ms)


_TYPES: tuple[str, ...] = (  # in the order of events of one change
    *(WebhookEvent.RUN_SUSPENDED, WebhookEvent.ITEM_CREATED, WebhookEvent.ITEM_ESCALATED, WebhookEvent.ITEM_DECIDED),
    *(WebhookEvent.ITEM_WITHDRAWN, WebhookEvent.RUN_RESUMED, WebhookEvent.RUN_FINISHED),
)


def find_place(type_: str) -> int:
    """Return the place of an event among those of one millisecond: an item may be created and decided in one."""
    return _TYPES.index(type_) if type_ in _TYPES else 0


def write_message(commit: Commit, keys: TenantKeys, message: Delivery, at_ms: int) -> None:
    """Save a new message, to be sent at `at_ms`.

    Its fraction of the millisecond keeps the events of one item in order, however many are taken from the lane at once.
    """
    commit.write("SET", keys.delivery(message.id), pack_delivery(message, 1))
    commit.write("ZADD", keys.lane(message.endpoint_id), f"{at_ms}.{find_place(message.type)}", message.id)
    commit.write("ZADD", keys.deliveries, "LT", at_ms, f"{LANE}{message.endpoint_id}")


def pack_delivery(delivery: Delivery, version: int) -> str:
    """Return the stored form of the message."""
    return f"{version}|{delivery.model_dump_json(exclude_defaults=True)}"
