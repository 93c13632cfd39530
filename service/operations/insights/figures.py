"""Insights: what was asked and decided in a span, by tool and by reviewer, and what changed since the span before."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from sayso.core.clock import DAY_MS, HOUR_MS
from service.operations.insights.attention import Limits, PersonFigures, add_drills, list_people, read_limits
from service.operations.insights.outcomes import Outcomes, read_outcomes
from service.operations.insights.rule_costs import RuleCost, add_proposals, list_rule_costs
from service.operations.insights.rule_suggestions import suggest_rule
from service.store.insights.counters import Counters
from service.store.insights.metrics import Metric
from service.store.insights.recents import Recents
from service.store.insights.tallies import Count, find_quantile, group_by_name, read_histogram
from service.wiring import Wiring

Range = Literal["24h", "7d", "30d", "90d"]


class _Span(NamedTuple):
    """How many hours or days a range has, and how many of them one point of the chart covers."""

    slot_ms: int
    slots: int
    per_point: int = 1


_SPANS: dict[Range, _Span] = {
    "24h": _Span(HOUR_MS, 24),
    "7d": _Span(HOUR_MS, 7 * 24, 6),
    "30d": _Span(DAY_MS, 30),
    "90d": _Span(DAY_MS, 90),
}
RANGES: tuple[Range, ...] = tuple(_SPANS)
_SUGGESTED = _SPANS["30d"]


@dataclass(frozen=True, kw_only=True)
class Figures(Outcomes):
    """The figures of one tool, or of all: shares are None without decisions, and times are in ms."""

    p50_ms: int | None = None
    p95_ms: int | None = None

    @property
    def approve_rate(self) -> float | None:
        """The share of approvals, with and without edits, in approvals and denials."""
        judged = self.approved + self.denied
        return self.approved / judged if judged else None


@dataclass(frozen=True, kw_only=True)
class ToolFigures(Figures):
    """The figures of one tool, and the text of a rule that would allow it, if people nearly always do."""

    tool: str = ""
    suggested_rule: str = ""


@dataclass(frozen=True)
class Point:
    """A part of the span: how many runs waited at its end, and what was asked, decided and left to the fallback."""

    from_ms: int
    waiting: int
    asked: int
    decided: int
    fallback: int


@dataclass(frozen=True)
class Insights:
    """The insights of one span. `before` has the figures of the span before it, and `waiting_before` its end."""

    range: Range
    from_ms: int
    to_ms: int
    waiting: int
    waiting_before: int
    now: Figures
    before: Figures
    points: tuple[Point, ...] = ()
    tools: tuple[ToolFigures, ...] = ()
    people: tuple[PersonFigures, ...] = ()
    rules: tuple[RuleCost, ...] = ()


async def read_insights(wiring: Wiring, range_: Range, person: str | None) -> Insights:
    """Return the insights of a range that ends now; with `person`, only their row of the reviewers."""
    now_ms = await wiring.schedule.now_ms()
    span = _SPANS[range_]
    slots = await _read(wiring.part(Counters), span, now_ms, 2 * span.slots)
    suggesting = await _read(wiring.part(Counters), _SUGGESTED, now_ms, _SUGGESTED.slots)
    waiting = await wiring.runs.count_pending()
    insights = await asyncio.to_thread(_build, range_, now_ms, waiting, slots, suggesting, person, read_limits(wiring))
    people = await add_drills(wiring.part(Recents).drills, insights.people)
    return replace(insights, people=people, rules=await add_proposals(wiring.grants, insights.rules))


async def read_rule_cost(wiring: Wiring, rule: str) -> RuleCost | None:
    """Return what a rule cost in the last 30 days; None if it asked for nothing."""
    slots = await _read(wiring.part(Counters), _SUGGESTED, await wiring.schedule.now_ms(), _SUGGESTED.slots)
    costs = (cost for cost in list_rule_costs(_add(slots)) if cost.rule == rule)
    return next(iter(await add_proposals(wiring.grants, costs)), None)


def _build(
    range_: Range,
    now_ms: int,
    waiting: int,
    slots: Sequence[Counter[Count]],
    suggesting: Sequence[Counter[Count]],
    person: str | None,
    limits: Limits,
) -> Insights:
    span = _SPANS[range_]
    earlier, current = slots[: span.slots], slots[span.slots :]
    first_ms = (now_ms // span.slot_ms - span.slots + 1) * span.slot_ms
    total = _add(current)
    people = list_people(total, limits)
    return Insights(
        range=range_,
        from_ms=first_ms,
        to_ms=now_ms,
        waiting=waiting,
        waiting_before=max(0, waiting - _growth(current)),
        now=_sum_up(total),
        before=_sum_up(_add(earlier)),
        points=tuple(_list_points(current, span, first_ms, waiting)),
        tools=tuple(_list_tools(total, _suggest_rules(_add(suggesting)))),
        people=tuple(figures for figures in people if person is None or figures.name == person),
        rules=tuple(list_rule_costs(total)),
    )


async def _read(counters: Counters, span: _Span, now_ms: int, count: int) -> list[Counter[Count]]:
    last = now_ms // span.slot_ms
    read = counters.read_hours if span.slot_ms == HOUR_MS else counters.read_days
    return await read(last - count + 1, last)


def _add(slots: Iterable[Counter[Count]]) -> Counter[Count]:
    total: Counter[Count] = Counter()
    for slot in slots:
        total.update(slot)
    return total


def _describe(metrics: Counter[str]) -> Figures:
    waits = read_histogram(metrics, Metric.WAIT)
    return Figures(
        **read_outcomes(metrics),
        p50_ms=find_quantile(waits, 0.5),
        p95_ms=find_quantile(waits, 0.95),
    )


def _sum_up(total: Counter[Count]) -> Figures:
    metrics: Counter[str] = Counter()
    for (metric, _), count in total.items():
        metrics[metric] += count
    return _describe(metrics)


def _growth(slots: Iterable[Counter[Count]]) -> int:
    """Return how many more runs wait after these slots than before them."""
    return sum(slot[Metric.CAME, ""] - slot[Metric.LEFT, ""] for slot in slots)


def _list_points(slots: Sequence[Counter[Count]], span: _Span, first_ms: int, waiting: int) -> list[Point]:
    """Return the points of the chart. What waited is counted back from now."""
    points: list[Point] = []
    for begin in range(len(slots) - span.per_point, -1, -span.per_point):
        part = slots[begin : begin + span.per_point]
        sums = _sum_up(_add(part))
        at_ms = first_ms + begin * span.slot_ms
        points.append(Point(at_ms, waiting, sums.asked, sums.decided, sums.fallback))
        waiting = max(0, waiting - _growth(part))
    return points[::-1]


def _list_tools(total: Counter[Count], rules: dict[str, str]) -> list[ToolFigures]:
    shown = (Metric.ASKED, Metric.DECIDED, Metric.FALLBACK)
    groups = [(name, metrics) for name, metrics in group_by_name(total).items() if any(metrics[key] for key in shown)]
    tools = [
        ToolFigures(**vars(_describe(sums)), tool=name, suggested_rule=rules.get(name, "")) for name, sums in groups
    ]
    return sorted(tools, key=lambda tool: (-tool.asked, -tool.decided, tool.tool))


def _suggest_rules(total: Counter[Count]) -> dict[str, str]:
    """Return a rule for each tool that people nearly always approve as requested."""
    rules = {
        name: suggest_rule(name, metrics[Metric.APPROVED] - metrics[Metric.EDITED], metrics[Metric.DECIDED])
        for name, metrics in group_by_name(total).items()
    }
    return {name: rule for name, rule in rules.items() if rule}
