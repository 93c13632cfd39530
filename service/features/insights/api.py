"""Routes of reports: the insights, and decisions that no person made."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from sayso.core.records.decisions import ActorKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.wire.channels import HeadlessReport, HeadlessView, InsightsView, Range
from sayso.wire.models import SentTimestamp, moment
from service.core.store.suspensions.reading import id_of
from service.core.wiring import Wiring
from service.edge.api.dependencies import Limit, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.insights.figures import read_insights

router = APIRouter(prefix="/reports", tags=["reports"], route_class=SignedInRoute)


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
    from_ms, to_ms = _to_ms(since, 0), _to_ms(until, 2**53)
    return await list_headless(parts, from_ms, to_ms, skip, limit)


@router.get("/insights", operation_id="reportInsights", responses=problems(400, 401, 403))
async def report_insights(
    caller: Person, parts: Parts, range: Annotated[Range, Query(description="The range; it ends now.")] = "7d"
) -> InsightsView:
    """Return what was asked and decided in a range, how fast, by tool, by reviewer and by rule."""
    person = None if "admin" in caller.roles else caller.name
    return InsightsView.model_validate(await read_insights(parts, range, person))


def _to_ms(at: datetime | None, default: int) -> int:
    return round(at.timestamp() * 1000) if at is not None else default


_AT_ONCE = 100


async def list_headless(wiring: Wiring, from_ms: int, to_ms: int, skip: int, limit: int) -> HeadlessReport:
    """Return the items that were decided headless from `from_ms` up to `to_ms`, the newest first.

    `skip` counts suspensions. A page may have fewer items than `limit`, or some more of its last suspension.
    """
    items: list[HeadlessView] = []
    position = skip
    while position < skip + 2_000:
        ids = await wiring.runs.decided(position, _AT_ONCE)
        by_id = {id_of(record): record for record in await wiring.desk.suspensions.read_page(ids)}
        for suspension_id in ids:
            position += 1
            record = by_id.get(suspension_id)
            if isinstance(record, SuspensionRecord):
                items += _list_items(record, from_ms, to_ms)
            if len(items) >= limit:
                return HeadlessReport(items=items, next_skip=position)
        if len(ids) < _AT_ONCE:
            return HeadlessReport(items=items, next_skip=None)
    return HeadlessReport(items=items, next_skip=position)


def _list_items(record: SuspensionRecord, from_ms: int, to_ms: int) -> list[HeadlessView]:
    """Return the items that their fallback decided in the time at once, so that nobody could."""
    return [
        HeadlessView(
            suspension_id=record.id,
            item_id=item.item_id,
            run_id=record.run.id,
            agent=record.run.agent,
            owner=record.run.owner,
            tool=item.tool.name,
            rule_id=item.terms.rule_id,
            verdict=outcome.verdict,
            at_ms=moment(outcome.at_ms),
        )
        for item in record.items
        if (outcome := item.outcome) is not None
        and outcome.by.kind is ActorKind.TIMEOUT
        and item.terms.deadline_at_ms <= record.created_at_ms
        and from_ms <= outcome.at_ms < to_ms
    ]
