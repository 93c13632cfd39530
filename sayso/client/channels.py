"""Requests for channels, webhooks, reports, drills and second looks."""

from collections.abc import Mapping, Sequence

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire import channels as views
from sayso.wire.models import Empty

_SECOND_LOOK = "/api/v1/second-looks"


LIST_CHANNELS = Request("GET", "/api/v1/channels", views.ChannelList)
LIST_DRILLS = Request("GET", "/api/v1/drills", views.DrillList)
LIST_SECOND_LOOK = Request("GET", _SECOND_LOOK, views.SecondLookList)


def send_test(channel: str, person: str) -> Request[views.AnswerList]:
    """Send a test card to a person, or to the channel's own destination for an empty name."""
    return Request("POST", f"/api/v1/channels/{segment(channel)}/test", views.AnswerList, body={"person": person})


def report_headless(since: str | None, until: str | None, skip: int, limit: int) -> Request[views.HeadlessReport]:
    """List items that a fallback decided without notifying anybody, the newest first."""
    given = {"from": since, "to": until, "skip": str(skip), "limit": str(limit)}
    query = {name: value for name, value in given.items() if value is not None}
    return Request("GET", "/api/v1/reports/headless", views.HeadlessReport, query=query)


def report_insights(range_: str) -> Request[views.InsightsView]:
    """Return the figures of `24h`, `7d`, `30d` or `90d`."""
    return Request("GET", "/api/v1/reports/insights", views.InsightsView, query={"range": range_})


def list_history(filters: Mapping[str, str], cursor: str, limit: int) -> Request[views.HistoryPage]:
    """List decided items that match, the latest first."""
    query = {**filters, "cursor": cursor, "limit": str(limit)}
    return Request("GET", "/api/v1/history", views.HistoryPage, query=query)


def plant_drill(template: str, reviewer: str) -> Request[views.PlantedView]:
    """Plant a false call of a template among a reviewer's items."""
    return Request("POST", "/api/v1/drills", views.PlantedView, body={"template": template, "reviewer": reviewer})


def take_second_look(run_id: str, seq: int, *, agrees: bool, reason: str = "") -> Request[views.SeenCallView]:
    """Say whether the call of a trail event was right; a disagreement needs a reason."""
    body: JsonObject = {"opinion": "agree" if agrees else "disagree", "reason": reason}
    return Request("POST", f"{_SECOND_LOOK}/{segment(run_id)}/{seq}", views.SeenCallView, body=body)


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
