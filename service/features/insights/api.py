"""Routes of reports: the insights, also as a page, and decisions that no person made."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.core.records.decisions import ActorKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.deadlines import describe_brief
from sayso.core.text.language import _, mark
from sayso.core.text.numbers import write_number
from sayso.wire.channels import HeadlessReport, HeadlessView, InsightsView, Range
from sayso.wire.models import SentTimestamp, moment
from service.core.store.suspensions.reading import id_of
from service.core.wiring import Wiring
from service.edge.api.dependencies import Limit, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.edge.web.additions import ItemPage
from service.edge.web.content.sorting import Keys, read_sorting
from service.edge.web.pages import show
from service.edge.web.sessions import SignedIn, wiring_of
from service.features.control.store import Recents
from service.features.insights.attention import PersonFigures, find_warning, read_limits
from service.features.insights.figures import RANGES, Insights, RuleCost, ToolFigures, read_insights

reports = APIRouter(prefix="/reports", tags=["reports"], route_class=SignedInRoute)


@reports.get("/headless", operation_id="reportHeadless", responses=problems(400, 401, 403))
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


@reports.get("/insights", operation_id="reportInsights", responses=problems(400, 401, 403))
async def report_insights(
    caller: Person, parts: Parts, range: Annotated[Range, Query(description="The range; it ends now.")] = "7d"
) -> InsightsView:
    """Return what was asked and decided in a range, how fast, by tool, by reviewer and by rule."""
    person = None if caller.rights.has("read_people") else caller.name
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


_NAMES: dict[Range, tuple[str, str, str]] = {
    "24h": (mark("24 h"), mark("the 24 h before"), mark("24 h ago")),
    "7d": (mark("7 days"), mark("the 7 days before"), mark("7 days ago")),
    "30d": (mark("30 days"), mark("the 30 days before"), mark("30 days ago")),
    "90d": (mark("90 days"), mark("the 90 days before"), mark("90 days ago")),
}
"""Each range, the span before it, and the time at which it begins."""

router = APIRouter()


class Headline(NamedTuple):
    """A number at the top of the page, and how it differs from the span before."""

    name: str
    value: str
    change: str


FIRST_TOOLS = 20  # the tools that the page shows at first
_TOOLS_BY: Keys[ToolFigures] = {
    "tool": lambda one: one.tool.casefold() or None,
    "asked": lambda one: one.asked,
    "approved": lambda one: one.approve_rate,
    "edited": lambda one: one.edited,
    "median": lambda one: one.p50_ms,
    "most": lambda one: one.p95_ms,
    "fallback": lambda one: one.fallback,
}
_RULES_BY: Keys[RuleCost] = {
    "rule": lambda one: one.rule.casefold() or None,
    "asked": lambda one: one.asked,
    "time": lambda one: one.people_ms if one.measured else None,
    "denied": lambda one: one.denied,
    "edited": lambda one: one.edited,
    "fallback": lambda one: one.fallback,
    "wrong": lambda one: one.disagreed if one.second_opinions else None,
    "near": lambda one: one.near_misses,
}
_PEOPLE_BY: Keys[PersonFigures] = {
    "name": lambda one: one.name.casefold() or None,
    "decided": lambda one: one.decided,
    "approved": lambda one: one.approve_rate,
    "look": lambda one: one.p50_look_ms,
    "fast": lambda one: one.fast_share,
    "instant": lambda one: one.instant_share,
    "night": lambda one: one.night_share,
}
Sort = Annotated[str, Query(max_length=20)]


@router.get("/insights")
async def insights(
    request: Request,
    visitor: SignedIn,
    range: Annotated[str, Query(max_length=10)] = "7d",
    tools: Sort = "",
    rules: Sort = "",
    people: Sort = "",
    every: Annotated[bool, Query()] = False,
) -> Response:
    """Show the insights of a range. A reviewer sees their own row of the reviewers, an admin all.

    `tools`, `rules` and `people` name the column that sorts their table; `every` shows more than the first tools.
    """
    wanted: Range = next((choice for choice in RANGES if choice == range), "7d")
    insights = await read_insights(
        wiring_of(request), wanted, None if visitor.rights.has("read_people") else visitor.name
    )
    sortings = {
        "tools": read_sorting(tools, _TOOLS_BY),
        "rules": read_sorting(rules, _RULES_BY),
        "people": read_sorting(people, _PEOPLE_BY),
    }
    chosen = {"range": wanted, **{name: one.written for name, one in sortings.items() if one}}
    chosen |= {"every": "1"} if every else {}
    sorted_tools = sortings["tools"].sort(insights.tools, _TOOLS_BY)
    points = insights.points
    return await show(
        request,
        visitor,
        "pages/insights.html",
        title=_("Insights"),
        insights=insights,
        tools=sorted_tools if every else sorted_tools[:FIRST_TOOLS],
        rules=sortings["rules"].sort(insights.rules, _RULES_BY),
        people=sortings["people"].sort(insights.people, _PEOPLE_BY),
        sortings=sortings,
        addresses={name: _write_address(chosen, name) for name in (*sortings, "every")},
        limits=read_limits(wiring_of(request)),
        headlines=list_headlines(insights),
        points=[  # the columns of the plot: times in seconds, then one for each line
            [point.from_ms / 1000 for point in points],
            [point.waiting for point in points],
            [point.decided for point in points],
            [point.fallback for point in points],
        ],
        ranges={choice: name for choice, (name, _before, _ago) in _NAMES.items()},
        hourly=wanted in ("24h", "7d"),
        now_ms=insights.to_ms,
    )


def _write_address(chosen: Mapping[str, str], name: str) -> str:
    """Return the page's address up to the value of a parameter, with the choices of the others."""
    return f"/insights?{urlencode({key: text for key, text in chosen.items() if key != name})}&{name}="


def list_headlines(insights: Insights) -> list[Headline]:
    """Return the numbers at the top of the page."""
    now, before = insights.now, insights.before
    earlier, ago = (_(name) for name in _NAMES[insights.range][1:])
    median, most = _describe_time(now.p50_ms), _describe_time(now.p95_ms)
    waiting = describe_change(insights.waiting, insights.waiting_before, ago)
    return [
        Headline(_("Waiting now"), write_number(insights.waiting), waiting),
        Headline(_("Decided"), write_number(now.decided), describe_change(now.decided, before.decided, earlier)),
        Headline(_("Median time to decision"), median, _compare_times(now.p50_ms, before.p50_ms, earlier)),
        Headline(_("95 % decided within"), most, _compare_times(now.p95_ms, before.p95_ms, earlier)),
        Headline(
            _("Went to fallback"), write_number(now.fallback), describe_change(now.fallback, before.fallback, earlier)
        ),
    ]


def describe_change(now: int, before: int, when: str) -> str:
    """Return how a count differs from an earlier one."""
    if now == before:
        return _("as many as %(when)s", when=when) if now else _("none %(when)s either", when=when)
    count = write_number(abs(now - before))
    if now > before:
        return _("%(count)s more than %(when)s", count=count, when=when)
    return _("%(count)s fewer than %(when)s", count=count, when=when)


def _compare_times(now: int | None, before: int | None, when: str) -> str:
    if before is None:
        return _("no decisions %(when)s", when=when)
    if now == before:
        return _("the same %(when)s", when=when)
    return _("%(time)s %(when)s", time=_describe_time(before), when=when)


def _describe_time(span_ms: int | None) -> str:
    return "–" if span_ms is None else describe_brief(span_ms)


async def add_to_item(page: ItemPage) -> dict[str, object]:
    """Return the fatigue that an item's page shows its reader."""
    return {"fatigue": find_warning(await page.wiring.part(Recents).read(page.person), page.now_ms)}
