"""Routes of reports."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from sayso.core.records.decisions import Verdict
from sayso.wire.models import SentTimestamp, Timestamp, View
from service.edge.api.dependencies import Limit, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.insights.figures import Range, read_insights
from service.features.insights.reports import list_headless

router = APIRouter(prefix="/reports", tags=["reports"], route_class=SignedInRoute)

_FOREVER_MS = 2**53


class HeadlessView(View):
    """An item that a fallback decided without notifying anybody."""

    suspension_id: str
    item_id: str
    run_id: str
    agent: str
    owner: str
    tool: str
    rule_id: str | None
    verdict: Verdict
    at: Timestamp = Field(validation_alias="at_ms")


class HeadlessReport(View):
    """One page of items, the newest first."""

    items: list[HeadlessView]
    next_skip: int | None = Field(description="`skip` of the next page; null at the end.")


@router.get("/headless", operation_id="reportHeadless", responses=problems(400, 401, 403))
async def report_headless(
    _caller: Person,
    parts: Parts,
    since: Annotated[SentTimestamp | None, Query(alias="from", description="Only items decided since then.")] = None,
    until: Annotated[SentTimestamp | None, Query(alias="to", description="Only items decided before then.")] = None,
    skip: Annotated[int, Query(ge=0, le=1_000_000, description="How many suspensions to skip.")] = 0,
    limit: Limit = 100,
) -> HeadlessReport:
    """List the items that a rule's fallback decided at once, with `timeout_s: 0`, so that no person was notified."""
    from_ms, to_ms = _to_ms(since, 0), _to_ms(until, _FOREVER_MS)
    report = await list_headless(parts, from_ms, to_ms, skip, limit)
    items = [HeadlessView.model_validate(item) for item in report.items]
    return HeadlessReport(items=items, next_skip=report.next_skip)


class OutcomesView(View):
    """What was asked, and how it was decided."""

    asked: int
    decided: int = Field(description="By people; fallbacks and rules are not counted.")
    approved: int
    denied: int
    edited: int
    fallback: int = Field(description="Items that nobody decided in time.")


class FiguresView(OutcomesView):
    """What was asked, and how people decided. Times are those to the decision."""

    approve_rate: float | None
    p50_ms: int | None = Field(description="The median, accurate to a tenth; null without decisions.")
    p95_ms: int | None


class ToolFiguresView(FiguresView):
    """The figures of one tool; an empty name stands for all tools beyond the limit."""

    tool: str
    suggested_rule: str = Field(description="A rule that would allow it, if people nearly always do.")


class PersonFiguresView(View):
    """The decisions of one person."""

    name: str
    decided: int
    measured: int = Field(description="Decisions whose look was measured.")
    p50_look_ms: int | None
    fast: int = Field(description="After a look under 3 s.")
    night: int = Field(description="Between 22:00 and 5:00, where the person is.")
    approved: int
    denied: int
    approvals_measured: int = Field(description="Approvals whose look was measured.")
    instant: int = Field(description="Those after a look under `SAYSO_ATTENTION_LOOK_MS`.")
    flagged: bool = Field(description="Whether too many approvals were instant, by the limits of the settings.")
    drills: int = Field(description="Decisions on drills in half a year, at most the last 100.")
    drills_approved: int
    drills_flagged: bool = Field(description="Whether the last sequential test of drills found too many approvals.")


class RuleCostView(OutcomesView):
    """What one rule cost; the rule `-` is the default, an empty one stands for all rules beyond the limit."""

    rule: str
    decisions: int = Field(description="Decisions of people, more than one for an item with a quorum.")
    measured: int = Field(description="Those whose look was measured.")
    people_ms: int = Field(description="Their time; an unmeasured look counts as the average of the measured ones.")
    proposals: int = Field(description="The grants that Sayso proposes for it, and that a person may put in force.")
    second_opinions: int = Field(description="Second looks taken of its calls.")
    disagreed: int = Field(description="Those in which a person disagreed with the call.")
    near_misses: int = Field(description="Calls that ran and were wrong, or that ran one step from a person.")
    sentence: str


class PointView(View):
    """One part of the range."""

    start: Timestamp = Field(validation_alias="from_ms")
    waiting: int = Field(description="Runs that waited at its end.")
    asked: int
    decided: int
    fallback: int


class InsightsView(View):
    """The figures of a range, and of the range before it."""

    range: Range
    start: Timestamp = Field(validation_alias="from_ms")
    end: Timestamp = Field(validation_alias="to_ms")
    waiting: int
    waiting_before: int = Field(description="Runs that waited at the start of the range.")
    now: FiguresView
    before: FiguresView
    points: list[PointView]
    tools: list[ToolFiguresView]
    people: list[PersonFiguresView] = Field(description="All reviewers for an admin, else the caller.")
    rules: list[RuleCostView]


@router.get("/insights", operation_id="reportInsights", responses=problems(400, 401, 403))
async def report_insights(
    caller: Person,
    parts: Parts,
    range: Annotated[Range, Query(description="The range; it ends now.")] = "7d",
) -> InsightsView:
    """Return what was asked and decided in a range, how fast, by tool, by reviewer and by rule."""
    person = None if "admin" in caller.roles else caller.name
    return InsightsView.model_validate(await read_insights(parts, range, person))


def _to_ms(at: datetime | None, default: int) -> int:
    return round(at.timestamp() * 1000) if at is not None else default
