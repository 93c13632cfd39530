"""The message that notifies an endpoint of a decision, but not of its outcome; saved in the deciding commit."""

import json
from hashlib import sha256
from uuid import UUID

from sayso.core.clock import DAY_MS, iso_utc
from sayso.core.records.base import Immutable
from sayso.core.records.suspensions import Status, SuspensionRecord
from service.store.connection.commits import Commit, Update
from service.store.keys import TenantKeys

RETRY_FOR_MS = 7 * DAY_MS  # how long after the decision a message is sent
LANE = "lane:"  # before the endpoint in the list of lanes


class Delivery(Immutable):
    """A message, its endpoint, and in `not_before_ms` its next attempt or the end of the current claim.

    `event_id` is the id that the receiver sees, if it differs from the message's own: one event goes to many endpoints.
    `reason` says why the last attempt failed.
    """

    id: str
    endpoint_id: str
    body: str
    until_ms: int
    event_id: str = ""
    type: str = ""
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
    text = json.dumps(body, separators=(",", ":"))
    return Delivery(
        id=event_id,
        endpoint_id=endpoint_id,
        body=text,
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


def write_message(commit: Commit, keys: TenantKeys, message: Delivery, at_ms: int) -> None:
    """Save a new message, to be sent at `at_ms`."""
    commit.write("SET", keys.delivery(message.id), pack_delivery(message, 1))
    commit.write("ZADD", keys.lane(message.endpoint_id), at_ms, message.id)
    commit.write("ZADD", keys.deliveries, "LT", at_ms, f"{LANE}{message.endpoint_id}")


def pack_delivery(delivery: Delivery, version: int) -> str:
    """Return the stored form of the message."""
    return f"{version}|{delivery.model_dump_json(exclude_defaults=True)}"
