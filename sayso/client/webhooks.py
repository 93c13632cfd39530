"""Requests and responses for webhook endpoints, failed messages and senders of signed decisions."""

from collections.abc import Sequence

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire import channels as views
from sayso.wire.models import Empty

_ENDPOINTS = "/api/v1/webhooks/endpoints"
_FAILURES = "/api/v1/webhooks/failures"
_SENDERS = "/api/v1/webhooks/senders"

LIST_ENDPOINTS = Request("GET", _ENDPOINTS, views.EndpointList)
LIST_FAILURES = Request("GET", _FAILURES, views.FailureList)
LIST_EVENTS = Request("GET", "/api/v1/webhooks/events", views.EventList)
LIST_SENDERS = Request("GET", _SENDERS, views.SenderList)


def create_endpoint(
    url: str, events: Sequence[str], signature: str, description: str
) -> Request[views.NewEndpointView]:
    """Register an endpoint, for every event without `events`."""
    body: JsonObject = {"url": url, "signature": signature, "description": description}
    if events:
        body["events"] = list(events)
    return Request("POST", _ENDPOINTS, views.NewEndpointView, body=body)


def verify_endpoint(endpoint_id: str) -> Request[views.EndpointView]:
    """Have an endpoint return a challenge."""
    return Request("POST", f"{_ENDPOINTS}/{segment(endpoint_id)}/verify", views.EndpointView)


def disable_endpoint(endpoint_id: str) -> Request[views.EndpointView]:
    """Send an endpoint nothing until it is verified again."""
    return Request("POST", f"{_ENDPOINTS}/{segment(endpoint_id)}/disable", views.EndpointView)


def rotate_endpoint(endpoint_id: str, overlap_s: int) -> Request[views.NewEndpointView]:
    """Give an endpoint a new secret."""
    body: JsonObject = {"overlap_s": overlap_s}
    return Request("POST", f"{_ENDPOINTS}/{segment(endpoint_id)}/rotate", views.NewEndpointView, body=body)


def delete_endpoint(endpoint_id: str) -> Request[Empty]:
    """Delete an endpoint."""
    return Request("DELETE", f"{_ENDPOINTS}/{segment(endpoint_id)}", Empty)


def redeliver(message_ids: Sequence[str]) -> Request[views.RedeliverView]:
    """Send messages again."""
    return Request("POST", f"{_FAILURES}/redeliver", views.RedeliverView, body={"ids": list(message_ids)})


def create_sender(name: str, reviewer: str) -> Request[views.NewSenderView]:
    """Register a sender."""
    return Request("POST", _SENDERS, views.NewSenderView, body={"name": name, "reviewer": reviewer})


def rotate_sender(sender_id: str, overlap_s: int) -> Request[views.NewSenderView]:
    """Give a sender a new secret."""
    body: JsonObject = {"overlap_s": overlap_s}
    return Request("POST", f"{_SENDERS}/{segment(sender_id)}/rotate", views.NewSenderView, body=body)


def revoke_sender(sender_id: str) -> Request[views.SenderView]:
    """Refuse everything from a sender."""
    return Request("POST", f"{_SENDERS}/{segment(sender_id)}/revoke", views.SenderView)
