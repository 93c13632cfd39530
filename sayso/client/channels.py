"""Requests for channels, reports, drills and second looks."""

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire import channels as views

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


def plant_drill(template: str, reviewer: str) -> Request[views.PlantedView]:
    """Plant a false call of a template among a reviewer's items."""
    return Request("POST", "/api/v1/drills", views.PlantedView, body={"template": template, "reviewer": reviewer})


def take_second_look(run_id: str, seq: int, *, agrees: bool, reason: str = "") -> Request[views.SeenCallView]:
    """Say whether the call of a trail event was right; a disagreement needs a reason."""
    body: JsonObject = {"opinion": "agree" if agrees else "disagree", "reason": reason}
    return Request("POST", f"{_SECOND_LOOK}/{segment(run_id)}/{seq}", views.SeenCallView, body=body)
