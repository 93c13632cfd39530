"""Views of webhook endpoints, failed messages and senders of signed decisions."""

from typing import Any, Literal

from pydantic import Field

from sayso.core.records.events import WebhookEvent
from sayso.wire.models import Timestamp, View

Scheme = Literal["hmac", "ed25519"]
"""How messages are signed: with a secret that both sides know, or with a key whose public half receivers have."""

EndpointState = Literal["unverified", "active", "disabled"]
"""An endpoint receives events once it returned a challenge, until it answers 410 or an admin disables it."""


class EndpointView(View):
    """An endpoint without its secret."""

    id: str
    url: str
    events: tuple[WebhookEvent, ...]
    owner: str | None = Field(description="The agent whose runs it is about; null for all runs.")
    description: str
    state: EndpointState
    reason: str = Field(description="Why it is disabled.")
    signature: Scheme
    public_key: str | None = Field(description="The key that verifies ed25519 signatures.")
    created_by: str
    created_at: Timestamp


class NewEndpointView(EndpointView):
    """An endpoint with its new secret."""

    secret: str | None = Field(description="The only copy, `whsec_…`; null for ed25519.")


class EndpointList(View):
    """Endpoints, the oldest first."""

    endpoints: list[EndpointView]


class FailureView(View):
    """A message that was refused and is not delivered."""

    id: str
    event_id: str = Field(validation_alias="message_id", description="The `webhook-id` that the receiver sees.")
    endpoint_id: str
    type: str
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    tries: int
    status: int = Field(description="The last HTTP status; 0 without a response.")
    reason: str
    last_try_at: Timestamp = Field(validation_alias="tried_at_ms")
    next_try_at: Timestamp | None = Field(description="Null once it was given up.")


class FailureList(View):
    """Failed messages, the latest first."""

    failures: list[FailureView]


class RedeliverView(View):
    """How many messages are sent again."""

    redelivered: int


class EventList(View):
    """The JSON Schema of each event."""

    events: dict[WebhookEvent, dict[str, Any]]


class SenderView(View):
    """A sender without its secrets."""

    id: str
    name: str
    reviewer: str
    path: str = Field(description="Where it sends its decisions.")
    created_by: str
    created_at: Timestamp
    revoked_at: Timestamp | None


class NewSenderView(SenderView):
    """A sender with its new secret."""

    secret: str = Field(description="The only copy, `whsec_…`.")


class SenderList(View):
    """Senders, the oldest first."""

    senders: list[SenderView]
