"""Routes of reports."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from sayso.records.decisions import Verdict
from service.api.routing.dependencies import Limit, Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import SentTimestamp, Timestamp, View
from service.http.openapi import problems
from service.operations.reports import list_headless

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


class HeadlessReport(BaseModel):
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
    found = await list_headless(parts, from_ms, to_ms, skip, limit)
    return HeadlessReport(items=[HeadlessView.model_validate(one) for one in found.items], next_skip=found.next_skip)


def _to_ms(at: datetime | None, default: int) -> int:
    return round(at.timestamp() * 1000) if at is not None else default
