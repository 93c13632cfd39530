"""The page of insights: what waits, what was decided and how fast, by tool and by reviewer."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.sentences.times import describe_brief
from service.operations.insights.figures import RANGES, Insights, Range, read_insights
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of

RANGE_NAMES: dict[Range, str] = {"24h": "24 h", "7d": "7 days", "30d": "30 days", "90d": "90 days"}

router = APIRouter()


@dataclass(frozen=True)
class Headline:
    """A number at the top of the page, and how it differs from the span before."""

    name: str
    value: str
    change: str


@router.get("/insights")
async def insights(request: Request, visitor: SignedIn, range: Annotated[str, Query(max_length=10)] = "7d") -> Response:
    """Show the insights of a range. A reviewer sees their own row of the reviewers, an admin all."""
    wanted: Range = next((one for one in RANGES if one == range), "7d")
    admin = "admin" in visitor.principal.roles
    found = await read_insights(wiring_of(request), wanted, None if admin else visitor.name)
    return await show(
        request,
        visitor,
        "pages/insights.html",
        title="Insights",
        insights=found,
        headlines=list_headlines(found),
        points=_list_plotted(found),
        ranges=RANGE_NAMES,
        hourly=wanted in ("24h", "7d"),
        all_people=admin,
        now_ms=found.to_ms,
    )


def list_headlines(found: Insights) -> list[Headline]:
    """Return the numbers at the top of the page."""
    now, before, span = found.now, found.before, RANGE_NAMES[found.range]
    earlier = f"the {span} before"
    waiting = describe_change(found.waiting, found.waiting_before, f"{span} ago")
    decided = describe_change(now.decided, before.decided, earlier)
    median, most = (
        _compare_times(now.p50_ms, before.p50_ms, earlier),
        _compare_times(now.p95_ms, before.p95_ms, earlier),
    )
    fallback = describe_change(now.fallback, before.fallback, earlier)
    return [
        Headline("Waiting now", f"{found.waiting:,}", waiting),
        Headline("Decided", f"{now.decided:,}", decided),
        Headline("Median time to decision", _describe_time(now.p50_ms), median),
        Headline("95 % decided within", _describe_time(now.p95_ms), most),
        Headline("Went to fallback", f"{now.fallback:,}", fallback),
    ]


def describe_change(now: int, before: int, when: str) -> str:
    """Return how a count differs from an earlier one."""
    if now == before:
        return f"as many as {when}" if now else f"none {when} either"
    return f"{abs(now - before):,} {'more' if now > before else 'fewer'} than {when}"


def _compare_times(now: int | None, before: int | None, when: str) -> str:
    if before is None:
        return f"no decisions {when}"
    return f"{_describe_time(before)} {when}" if now != before else f"the same {when}"


def _describe_time(span_ms: int | None) -> str:
    return "–" if span_ms is None else describe_brief(span_ms)


def _list_plotted(found: Insights) -> list[list[float]]:
    """Return the columns of the plot: times in seconds, then one column for each line."""
    points = found.points
    return [
        [one.from_ms / 1000 for one in points],
        [one.waiting for one in points],
        [one.decided for one in points],
        [one.fallback for one in points],
    ]
