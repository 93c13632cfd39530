"""Requests and responses for channels, reports, drills and second looks."""

from datetime import datetime

from sayso.client.requests import Request, segment
from sayso.core.canonical_json import JsonObject
from sayso.wire.models import View

_SECOND_LOOK = "/api/v1/second-looks"


class ChannelSetting(View):
    """A field of a channel; secrets are hidden."""

    name: str
    text: str


class ChannelView(View):
    """A configured channel."""

    name: str
    kind: str
    destination: str = ""
    settings: tuple[ChannelSetting, ...] = ()


class ChannelPage(View):
    """All configured channels."""

    channels: tuple[ChannelView, ...]


class AnswerView(View):
    """The provider's answer to a test card at one address."""

    accepted: bool
    text: str = ""


class AnswerPage(View):
    """The provider's answers, one for each address."""

    answers: tuple[AnswerView, ...]


class HeadlessItem(View):
    """An item that a fallback decided without notifying anybody."""

    suspension_id: str
    item_id: str
    run_id: str
    agent: str
    owner: str
    tool: str
    rule_id: str | None = None
    verdict: str
    at: datetime


class ToolFigures(View):
    """The figures of one tool."""

    tool: str
    asked: int
    decided: int
    approve_rate: float | None = None
    edited: int
    fallback: int
    p50_ms: int | None = None
    p95_ms: int | None = None


class PersonFigures(View):
    """The decisions of one person."""

    name: str
    decided: int
    approved: int = 0
    denied: int = 0
    measured: int
    p50_look_ms: int | None = None
    fast: int
    night: int
    approvals_measured: int = 0
    instant: int = 0
    drills: int = 0
    drills_approved: int = 0
    flagged: bool = False
    drills_flagged: bool = False


class RuleCost(View):
    """What one rule cost; the rule `-` is the default."""

    rule: str
    asked: int
    denied: int
    edited: int
    fallback: int
    decisions: int
    measured: int
    people_ms: int
    proposals: int = 0
    second_opinions: int = 0
    disagreed: int = 0
    near_misses: int = 0
    sentence: str


class InsightsReport(View):
    """What was asked and decided in a range, by tool, by reviewer and by rule."""

    waiting: int
    tools: tuple[ToolFigures, ...]
    people: tuple[PersonFigures, ...]
    rules: tuple[RuleCost, ...] = ()


class HeadlessPage(View):
    """One page of a report."""

    items: tuple[HeadlessItem, ...]
    next_skip: int | None = None


class DrillTemplate(View):
    """A template of a false call."""

    id: str
    agent: str
    requested_by: str
    tool: str
    args: JsonObject
    signs: tuple[str, ...]


class DrillPage(View):
    """The templates, and the hours between scheduled drills; 0 for none."""

    every_h: int
    drills: tuple[DrillTemplate, ...]


class PlantedDrill(View):
    """A planted drill."""

    suspension_id: str
    item_id: str


class SeenCall(View):
    """A call that was drawn after it was allowed or decided."""

    run_id: str
    seq: int
    agent: str
    tool: str
    args: JsonObject
    rule_id: str | None = None
    verdict: str
    decided_by: tuple[str, ...] = ()
    at: datetime
    may_take: bool = False


class SecondLookPage(View):
    """The calls that have waited longest, and how many wait."""

    calls: tuple[SeenCall, ...]
    total: int = 0


LIST_CHANNELS = Request("GET", "/api/v1/channels", ChannelPage)
LIST_DRILLS = Request("GET", "/api/v1/drills", DrillPage)
LIST_SECOND_LOOK = Request("GET", _SECOND_LOOK, SecondLookPage)


def send_test(channel: str, person: str) -> Request[AnswerPage]:
    """Send a test card to a person, or to the channel's own destination for an empty name."""
    return Request("POST", f"/api/v1/channels/{segment(channel)}/test", AnswerPage, body={"person": person})


def report_headless(since: str | None, until: str | None, skip: int, limit: int) -> Request[HeadlessPage]:
    """List items that a fallback decided without notifying anybody, the newest first."""
    given = {"from": since, "to": until, "skip": str(skip), "limit": str(limit)}
    query = {name: value for name, value in given.items() if value is not None}
    return Request("GET", "/api/v1/reports/headless", HeadlessPage, query=query)


def report_insights(range_: str) -> Request[InsightsReport]:
    """Return the figures of `24h`, `7d`, `30d` or `90d`."""
    return Request("GET", "/api/v1/reports/insights", InsightsReport, query={"range": range_})


def plant_drill(template: str, reviewer: str) -> Request[PlantedDrill]:
    """Plant a false call of a template among a reviewer's items."""
    return Request("POST", "/api/v1/drills", PlantedDrill, body={"template": template, "reviewer": reviewer})


def take_second_look(run_id: str, seq: int, *, agrees: bool, reason: str = "") -> Request[SeenCall]:
    """Say whether the call of a trail event was right; a disagreement needs a reason."""
    body: JsonObject = {"opinion": "agree" if agrees else "disagree", "reason": reason}
    return Request("POST", f"{_SECOND_LOOK}/{segment(run_id)}/{seq}", SeenCall, body=body)
