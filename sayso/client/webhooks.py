"""Requests and responses for webhook endpoints, failed messages and senders of signed decisions."""

from collections.abc import Sequence
from datetime import datetime

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.models import Empty, View

_ENDPOINTS = "/api/v1/webhooks/endpoints"
_FAILURES = "/api/v1/webhooks/failures"
_SENDERS = "/api/v1/webhooks/senders"


class EndpointView(View):
    """An endpoint. `secret` holds the secret only when it is new."""

    id: str
    url: str
    events: tuple[str, ...]
    owner: str | None = None
    description: str = ""
    state: str
    reason: str = ""
    signature: str
    public_key: str | None = None
    created_by: str
    created_at: datetime
    secret: str | None = None


class EndpointPage(View):
    """Endpoints, the oldest first."""

    endpoints: tuple[EndpointView, ...]


class FailureView(View):
    """A message that was refused and is not delivered."""

    id: str
    event_id: str
    endpoint_id: str
    type: str
    created_at: datetime
    tries: int
    status: int
    reason: str
    last_try_at: datetime
    next_try_at: datetime | None = None


class FailurePage(View):
    """Failed messages, the latest first."""

    failures: tuple[FailureView, ...]


class Redelivered(View):
    """How many messages are sent again."""

    redelivered: int


class EventPage(View):
    """The JSON Schema of each event."""

    events: JsonObject


class SenderView(View):
    """A sender. `secret` holds the secret only when it is new."""

    id: str
    name: str
    reviewer: str
    path: str
    created_by: str
    created_at: datetime
    revoked_at: datetime | None = None
    secret: str | None = None


class SenderPage(View):
    """Senders, the oldest first."""

    senders: tuple[SenderView, ...]


LIST_ENDPOINTS = Request("GET", _ENDPOINTS, EndpointPage)
LIST_FAILURES = Request("GET", _FAILURES, FailurePage)
LIST_EVENTS = Request("GET", "/api/v1/webhooks/events", EventPage)
LIST_SENDERS = Request("GET", _SENDERS, SenderPage)


def create_endpoint(url: str, events: Sequence[str], signature: str, description: str) -> Request[EndpointView]:
    """Register an endpoint, for every event without `events`."""
    body: JsonObject = {"url": url, "signature": signature, "description": description}
    if events:
        body["events"] = list(events)
    return Request("POST", _ENDPOINTS, EndpointView, body=body)


def verify_endpoint(endpoint_id: str) -> Request[EndpointView]:
    """Have an endpoint return a challenge."""
    return Request("POST", f"{_ENDPOINTS}/{segment(endpoint_id)}/verify", EndpointView)


def disable_endpoint(endpoint_id: str) -> Request[EndpointView]:
    """Send an endpoint nothing until it is verified again."""
    return Request("POST", f"{_ENDPOINTS}/{segment(endpoint_id)}/disable", EndpointView)


def rotate_endpoint(endpoint_id: str, overlap_s: int) -> Request[EndpointView]:
    """Give an endpoint a new secret."""
    body: JsonObject = {"overlap_s": overlap_s}
    return Request("POST", f"{_ENDPOINTS}/{segment(endpoint_id)}/rotate", EndpointView, body=body)


def delete_endpoint(endpoint_id: str) -> Request[Empty]:
    """Delete an endpoint."""
    return Request("DELETE", f"{_ENDPOINTS}/{segment(endpoint_id)}", Empty)


def redeliver(message_ids: Sequence[str]) -> Request[Redelivered]:
    """Send messages again."""
    return Request("POST", f"{_FAILURES}/redeliver", Redelivered, body={"ids": list(message_ids)})


def create_sender(name: str, reviewer: str) -> Request[SenderView]:
    """Register a sender."""
    return Request("POST", _SENDERS, SenderView, body={"name": name, "reviewer": reviewer})


def rotate_sender(sender_id: str, overlap_s: int) -> Request[SenderView]:
    """Give a sender a new secret."""
    body: JsonObject = {"overlap_s": overlap_s}
    return Request("POST", f"{_SENDERS}/{segment(sender_id)}/rotate", SenderView, body=body)


def revoke_sender(sender_id: str) -> Request[SenderView]:
    """Refuse everything from a sender."""
    return Request("POST", f"{_SENDERS}/{segment(sender_id)}/revoke", SenderView)
