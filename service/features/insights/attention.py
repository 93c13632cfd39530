"""How carefully each reviewer looks, and signs that a person approves without looking; both rank nobody."""

from collections import Counter
from collections.abc import Sequence
from statistics import median_low
from typing import NamedTuple

from sayso.core.sentences.deadlines import describe_brief, describe_span
from sayso.core.text.language import _
from service.core.wiring import Wiring
from service.features.control.drills import is_flagged
from service.features.control.store import DrillResults, Recent, RecentDecisions, Recents
from service.features.insights.facts import Metric
from service.features.insights.store import Count, find_quantile, group_by_name, middle_of, read_histogram

DECISIONS = 20
SHORT_MS = 2_000


class Fatigue(NamedTuple):
    """Approvals in a row, the time that they took, and the median look."""

    approved: int
    span_ms: int
    median_ms: int

    @property
    def sentence(self) -> str:
        return _(
            "%(count)s approved in %(span)s, median %(median)s. Take the next from another tool, or pause 10 min.",
            count=self.approved,
            span=describe_span(self.span_ms),
            median=describe_brief(self.median_ms),
        )


def find_fatigue(decisions: Sequence[Recent]) -> Fatigue | None:
    """Return the fatigue in the last 20 decisions: all approve, after a median look under 2 s, all measured."""
    last = decisions[-DECISIONS:]
    spans_ms = [decision.look_ms for decision in last if decision.approved and decision.look_ms is not None]
    if len(spans_ms) < DECISIONS or (median_ms := median_low(spans_ms)) >= SHORT_MS:
        return None
    return Fatigue(DECISIONS, last[-1].at_ms - last[0].at_ms, median_ms)


async def warn_tired(recents: Recents, name: str) -> bool:
    """Warn a person with fatigue, unless one of the same decisions warned them before."""
    decisions, warned_at_ms = await recents.read(name)
    if find_fatigue(decisions) is None or (warned_at_ms or 0) >= decisions[-DECISIONS].at_ms:
        return False
    await recents.warn(name, decisions[-1].at_ms)
    return True


def find_warning(recent: RecentDecisions, now_ms: int) -> Fatigue | None:
    """Return the fatigue that a person is shown now: until their second decision after it, and for 10 minutes."""
    warned_at_ms = recent.warned_at_ms
    if warned_at_ms is None or now_ms - warned_at_ms > 600_000:
        return None
    until = [decision for decision in recent.decisions if decision.at_ms <= warned_at_ms]
    return find_fatigue(until) if len(recent.decisions) - len(until) < 2 else None


class Limits(NamedTuple):
    """When a row is flagged: this share of at least so many measured approvals took a shorter look."""

    look_ms: int
    share: float
    fewest: int


class PersonFigures(NamedTuple):
    """The decisions of one person; `fast` counts looks under 3 s, and `night` decisions after 22:00 where they are.

    `instant` counts approvals after a look under the threshold of the settings; with too many of them, the row is
    `flagged`. Drills are those of half a year, in any range.
    """

    name: str
    decided: int
    measured: int
    fast: int
    night: int
    p50_look_ms: int | None
    approved: int
    denied: int
    approvals_measured: int
    instant: int
    flagged: bool
    drills: int = 0
    drills_approved: int = 0
    drills_flagged: bool = False

    @property
    def approve_rate(self) -> float | None:
        judged = self.approved + self.denied
        return self.approved / judged if judged else None

    @property
    def instant_share(self) -> float | None:
        return self.instant / self.approvals_measured if self.approvals_measured else None

    @property
    def fast_share(self) -> float | None:
        return self.fast / self.measured if self.measured else None

    @property
    def night_share(self) -> float:
        return self.night / self.decided


def read_limits(wiring: Wiring) -> Limits:
    """Return the limits of the settings."""
    settings = wiring.settings
    return Limits(settings.attention_look_ms, settings.attention_percent / 100, settings.attention_fewest)


def list_people(total: Counter[Count], limits: Limits) -> list[PersonFigures]:
    """Return the figures of each person who decided, by name."""
    groups = sorted(group_by_name(total).items())
    return [_describe(name, metrics, limits) for name, metrics in groups if metrics[Metric.BY]]


async def add_drills(results: DrillResults, people: Sequence[PersonFigures]) -> tuple[PersonFigures, ...]:
    """Return the figures with the drills of each person."""
    drilled = await results.read([person.name for person in people])
    return tuple(
        person._replace(
            drills=len(drilled[person.name]),
            drills_approved=sum(drilled[person.name]),
            drills_flagged=is_flagged(drilled[person.name]),
        )
        for person in people
    )


def _describe(name: str, metrics: Counter[str], limits: Limits) -> PersonFigures:
    spans, approvals = read_histogram(metrics, Metric.LOOK), read_histogram(metrics, Metric.YES_LOOK)
    measured = sum(approvals.values())
    instant = sum(count for bucket, count in approvals.items() if middle_of(bucket) < limits.look_ms)
    return PersonFigures(
        name=name,
        decided=metrics[Metric.BY],
        measured=sum(spans.values()),
        fast=metrics[Metric.FAST],
        night=metrics[Metric.NIGHT],
        p50_look_ms=find_quantile(spans, 0.5),
        approved=metrics[Metric.YES],
        denied=metrics[Metric.NO],
        approvals_measured=measured,
        instant=instant,
        flagged=measured >= limits.fewest and instant >= limits.share * measured,
    )
