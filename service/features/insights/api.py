"""Routes of reports."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from sayso.wire.channels import HeadlessReport, HeadlessView, InsightsView, Range
from sayso.wire.models import SentTimestamp
from service.edge.api.dependencies import Limit, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.insights.figures import read_insights
from service.features.insights.reports import list_headless

router = APIRouter(prefix="/reports", tags=["reports"], route_class=SignedInRoute)

_FOREVER_MS = 2**53


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
