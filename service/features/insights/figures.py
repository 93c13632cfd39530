"""Insights: what was asked and decided in a span, by tool, reviewer and rule, and what changed since the span before.

With them what each rule costs, and rules that an admin may want, because people nearly always approve a tool.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.core.text.language import _, ngettext
from sayso.core.text.numbers import write_number
from sayso.wire.channels import Range
from service.core.store.rules import DEFAULT
from service.core.wiring import Wiring
from service.features.control.store import Recents
from service.features.insights.attention import Limits, PersonFigures, add_drills, list_people, read_limits
from service.features.insights.facts import Metric
from service.features.insights.store import Count, Counters, find_quantile, group_by_name, read_histogram
from service.features.permissions.desk import Granting


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The numbers of items that were asked about, and that people or the fallback decided."""

    asked: int = 0
    decided: int = 0
    approved: int = 0
    denied: int = 0
    edited: int = 0
    fallback: int = 0


def read_outcomes(metrics: Mapping[str, int], prefix: str = "") -> dict[str, int]:
    """Return the fields of `Outcomes` from the counters that begin with the prefix."""
    return {field.name: metrics.get(f"{prefix}{field.name}", 0) for field in fields(Outcomes)}


_PLAIN = re.compile(r"[A-Za-z][\w.-]{0,99}", re.ASCII)


def suggest_rule(tool: str, as_requested: int, decided: int) -> str:
    """Return the text of a rule that allows the tool; empty unless over 98 % of at least 50 decisions did.

    A name that is not plain ASCII gets none: the text is copied into a file.
    """
    if decided < 50 or as_requested <= 0.98 * decided or not _PLAIN.fullmatch(tool):
        return ""
    reason = f"People approved {as_requested} of {decided} requests as they were in 30 days"
    return f'- id: allow-{tool}\n  tool: "{tool}"\n  action: allow\n  reason: {reason}\n'


@dataclass(frozen=True, kw_only=True)
class RuleCost(Outcomes):
    """The figures of one rule. An empty name stands for all rules beyond the limit of counters.

    `decisions` counts all of people, more than one for an item with a quorum. `look_ms` is the time of the
    `measured` ones. In `disagreed` of the `second_opinions` a person disagreed with the call, which ran in `wrong` of
    them. `near` counts calls that were allowed one step from a person. `proposals` counts the grants that Sayso
    proposes for it and that a person may put in force.
    """

    rule: str
    decisions: int
    measured: int
    look_ms: int
    proposals: int = 0
    second_opinions: int = 0
    disagreed: int = 0
    wrong: int = 0
    near: int = 0

    @property
    def near_misses(self) -> int:
        """Calls that ran although a second look found them wrong, and allowed calls one step from a person."""
        return self.wrong + self.near

    @property
    def by_default(self) -> bool:
        return self.rule == DEFAULT

    @property
    def people_ms(self) -> int:
        """The time of all decisions: those without a measured look count as the average of the measured ones."""
        return round(self.look_ms * self.decisions / self.measured) if self.measured else 0

    @property
    def time(self) -> str:
        """The time of people, in minutes below an hour and in hours above."""
        if not self.measured:
            return _("time unknown")
        if self.people_ms >= HOUR_MS:
            return _("%(hours)s h", hours=f"{self.people_ms / HOUR_MS:.1f}")
        return _("%(minutes)s min", minutes=f"{self.people_ms / 60_000:.1f}")

    @property
    def sentence(self) -> str:
        name = _("default") if self.by_default else self.rule or _("all others")
        asks = ngettext("%(number)s ask", "%(number)s asks", self.asked, number=write_number(self.asked))
        denials = ngettext("%(number)s denial", "%(number)s denials", self.denied, number=write_number(self.denied))
        cost = f"{name}: {asks}, {self.time}, {denials}"
        if not self.proposals:
            return cost
        ready = ngettext("a grant proposal is ready", "%(num)s grant proposals are ready", self.proposals)
        return f"{cost}: {ready}"


async def add_proposals(grants: Granting, costs: Iterable[RuleCost]) -> tuple[RuleCost, ...]:
    """Return the costs with the grants that wait for a person."""
    ready = await grants.count_ready()
    return tuple(replace(cost, proposals=ready[cost.rule]) for cost in costs)


def list_rule_costs(total: Counter[Count]) -> list[RuleCost]:
    """Return the cost of each rule, those with the most time of people first."""
    of_rules = Counter({key: count for key, count in total.items() if key[0].startswith("rule_")})
    costs = (
        RuleCost(
            rule=rule,
            **read_outcomes(metrics, "rule_"),
            decisions=metrics[Metric.RULE_DECISIONS],
            measured=metrics[Metric.RULE_MEASURED],
            look_ms=metrics[Metric.RULE_LOOK_MS],
            second_opinions=metrics[Metric.RULE_SECOND_LOOK],
            disagreed=metrics[Metric.RULE_DISAGREED],
            wrong=metrics[Metric.RULE_WRONG],
            near=metrics[Metric.RULE_NEAR],
        )
        for rule, metrics in group_by_name(of_rules).items()
    )
    return sorted(costs, key=lambda cost: (-cost.people_ms, -cost.asked, cost.rule))


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
    return replace(insights, people=people, rules=await add_proposals(wiring.feature(Granting), insights.rules))


async def read_rule_cost(wiring: Wiring, rule: str) -> RuleCost | None:
    """Return what a rule cost in the last 30 days; None if it asked for nothing."""
    slots = await _read(wiring.part(Counters), _SUGGESTED, await wiring.schedule.now_ms(), _SUGGESTED.slots)
    costs = (cost for cost in list_rule_costs(_add(slots)) if cost.rule == rule)
    return next(iter(await add_proposals(wiring.feature(Granting), costs)), None)


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
    rules = {
        name: suggest_rule(name, metrics[Metric.APPROVED] - metrics[Metric.EDITED], metrics[Metric.DECIDED])
        for name, metrics in group_by_name(_add(suggesting)).items()
    }
    return Insights(
        range=range_,
        from_ms=first_ms,
        to_ms=now_ms,
        waiting=waiting,
        waiting_before=max(0, waiting - _growth(current)),
        now=_sum_up(total),
        before=_sum_up(_add(earlier)),
        points=tuple(_list_points(current, span, first_ms, waiting)),
        tools=tuple(_list_tools(total, {name: rule for name, rule in rules.items() if rule})),
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


def _describe_figures(metrics: Counter[str]) -> Figures:
    waits = read_histogram(metrics, Metric.WAIT)
    return Figures(**read_outcomes(metrics), p50_ms=find_quantile(waits, 0.5), p95_ms=find_quantile(waits, 0.95))


def _sum_up(total: Counter[Count]) -> Figures:
    metrics: Counter[str] = Counter()
    for (metric, _tool), count in total.items():
        metrics[metric] += count
    return _describe_figures(metrics)


def _growth(slots: Iterable[Counter[Count]]) -> int:
    return sum(slot[Metric.CAME, ""] - slot[Metric.LEFT, ""] for slot in slots)


def _list_points(slots: Sequence[Counter[Count]], span: _Span, first_ms: int, waiting: int) -> list[Point]:
    """Return the points of the chart. What waited is counted back from now."""
    points: list[Point] = []
    for begin in range(len(slots) - span.per_point, -1, -span.per_point):
        part = slots[begin : begin + span.per_point]
        sums = _sum_up(_add(part))
        points.append(Point(first_ms + begin * span.slot_ms, waiting, sums.asked, sums.decided, sums.fallback))
        waiting = max(0, waiting - _growth(part))
    return points[::-1]


def _list_tools(total: Counter[Count], rules: dict[str, str]) -> list[ToolFigures]:
    shown = (Metric.ASKED, Metric.DECIDED, Metric.FALLBACK)
    groups = [(name, metrics) for name, metrics in group_by_name(total).items() if any(metrics[key] for key in shown)]
    tools = [
        ToolFigures(**vars(_describe_figures(sums)), tool=name, suggested_rule=rules.get(name, ""))
        for name, sums in groups
    ]
    return sorted(tools, key=lambda tool: (-tool.asked, -tool.decided, tool.tool))
