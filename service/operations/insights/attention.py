"""How carefully each reviewer looks. Rows are in the order of names, so that they are no ranking."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from service.operations.drills.results import is_flagged
from service.store.insights.drills import DrillResults
from service.store.insights.metrics import Metric
from service.store.insights.tallies import Count, find_quantile, group_by_name, middle_of, read_histogram
from service.wiring import Wiring


class Limits(NamedTuple):
    """When a row is flagged: this share of at least so many measured approvals took a shorter look."""

    look_ms: int
    share: float
    fewest: int


@dataclass(frozen=True)
class PersonFigures:
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
        replace(
            person,
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
