"""The queue of facts, and the counters of one tenant: a metric with the name of a tool or person.

Each fact counts once, in its hour and day, however many processes count it and however often; the figures are those of
the trail.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import floor, log2
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.core.records.decisions import Verdict
from service.core.store.connection.connecting import text
from service.core.store.load import Starts
from service.core.store.lua import read_script
from service.core.store.tenants import TenantStore
from service.features.insights.facts import Facts, ItemFact, Metric, PersonFact, Step, read_facts

FAST_MS = 3_000  # a decision after a shorter look counts as fast
MOST_LOOK_MS = 600_000
"""A longer look counts as this long towards a rule's minutes: the page may have stayed open unattended."""

_FIRST_MS = 100
_PER_DOUBLING = 4
_NIGHT = (22, 5)


Count = tuple[str, str]  # a metric, with the bucket of a histogram behind a point, and a name


def tally(facts: Facts, zones: Mapping[str, ZoneInfo]) -> Counter[Count]:
    """Return what the facts add; `zones` has the time zones of people who are not in UTC."""
    counts: Counter[Count] = Counter()
    counts[Metric.CAME, ""] += facts.came
    counts[Metric.LEFT, ""] += facts.left
    for item in facts.items:
        metrics = _list_item_metrics(item)
        counts.update((metric, item.tool) for metric in metrics)
        if item.rule:
            counts.update((f"rule_{metric}", item.rule) for metric in metrics if "." not in metric)
    for person in facts.people:
        if person.drill:
            continue
        local = datetime.fromtimestamp(facts.at_ms / 1000, tz=UTC).astimezone(zones.get(person.name, UTC))
        counts.update((metric, person.name) for metric in _list_person_metrics(person, local.hour))
        if person.rule:
            counts[Metric.RULE_DECISIONS, person.rule] += 1  # every decision is a look, which may not be measured
        if person.rule and person.look_ms is not None:
            counts[Metric.RULE_MEASURED, person.rule] += 1
            counts[Metric.RULE_LOOK_MS, person.rule] += min(person.look_ms, MOST_LOOK_MS)
    counts.update(facts.noted)
    return +counts


def find_bucket(span_ms: int) -> int:
    """Return the bucket of a span: the first up to 100 ms, then four to each doubling."""
    return 0 if span_ms < _FIRST_MS else 1 + floor(_PER_DOUBLING * log2(span_ms / _FIRST_MS))


def middle_of(bucket: int) -> int:
    """Return the span, ms, that stands for a bucket; no span in it differs by more than 10 %, over 100 ms."""
    return _FIRST_MS // 2 if bucket == 0 else round(_FIRST_MS * 2 ** ((bucket - 0.5) / _PER_DOUBLING))


def find_quantile(buckets: Mapping[int, int], share: float) -> int | None:
    """Return the span, ms, that this share of a histogram does not exceed; None for an empty one."""
    total, passed = sum(buckets.values()), 0
    for bucket in sorted(buckets):
        passed += buckets[bucket]
        if passed >= share * total:
            return middle_of(bucket)
    return None


def group_by_name(total: Counter[Count]) -> dict[str, Counter[str]]:
    """Return the metrics by name of tool, person or rule."""
    grouped: dict[str, Counter[str]] = defaultdict(Counter)
    for (metric, name), count in total.items():
        grouped[name][metric] += count
    return grouped


def read_histogram(metrics: Counter[str], name: str) -> dict[int, int]:
    """Return the buckets of a histogram, each with its count."""
    parts = ((metric.partition("."), count) for metric, count in metrics.items())
    return {int(bucket): count for (metric, _, bucket), count in parts if metric == name}


def _list_item_metrics(item: ItemFact) -> list[str]:
    if item.step is not Step.DECIDED:
        return [item.step]
    metrics: list[str] = [Metric.DECIDED, f"{Metric.WAIT}.{find_bucket(item.wait_ms)}"]
    if item.verdict is Verdict.APPROVED:
        metrics += [Metric.APPROVED, *([Metric.EDITED] if item.edited else [])]
    elif item.verdict is Verdict.DENIED:
        metrics.append(Metric.DENIED)
    return metrics


def _list_person_metrics(person: PersonFact, hour: int) -> list[str]:
    metrics: list[str] = [Metric.BY]
    if person.approved or person.denied:
        metrics.append(Metric.YES if person.approved else Metric.NO)
    if hour >= _NIGHT[0] or hour < _NIGHT[1]:
        metrics.append(Metric.NIGHT)
    if person.look_ms is not None:
        metrics.append(f"{Metric.LOOK}.{find_bucket(person.look_ms)}")
        if person.look_ms < FAST_MS:
            metrics.append(Metric.FAST)
        if person.approved:
            metrics.append(f"{Metric.YES_LOOK}.{find_bucket(person.look_ms)}")
    return metrics


HOURS_KEPT = 14 * 24
DAYS_KEPT = 180  # twice the longest range, because a figure is shown with that of the time before it
_MOST_FIELDS = 20_000
_SPARE_MS = DAY_MS


class Waiting(NamedTuple):
    """Stored facts that are not yet counted; `facts` is None if another version wrote them."""

    stored: bytes
    facts: Facts | None


class Counters:
    """Counters by hour for two weeks and by day for half a year."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._count = store.redis.register_script(read_script("count"))
        self.starts = Starts(store)

    async def waiting(self, limit: int = 200) -> list[Waiting]:
        """Return facts that are not yet counted, the oldest first."""
        members: list[Any] = await self._redis.zrange(self._keys.facts, 0, limit - 1)
        return [Waiting(member, _parse(member)) for member in members]

    async def count(self, tallied: Sequence[tuple[Waiting, Mapping[Count, int]]]) -> int:
        """Add what facts count, and remove them from the queue; return how many were still there."""
        pending = {waiting.stored: (waiting, counts) for waiting, counts in tallied}
        while pending:
            stored = [*pending]
            keys, args = self._add_up(pending.values())
            gone: list[int] = await self._count(
                keys=[self._keys.facts, *keys], args=[_MOST_FIELDS, len(stored), *stored, *args]
            )
            if not gone:
                break
            for place in gone:  # another clock counted them
                del pending[stored[place - 1]]
        return len(pending)

    def _add_up(self, tallied: Iterable[tuple[Waiting, Mapping[Count, int]]]) -> tuple[list[str], list[str | int]]:
        """Return the keys of the hashes, and for each its lifetime and its counts."""
        sums: dict[tuple[str, int], Counter[Count]] = defaultdict(Counter)
        for waiting, counts in tallied:
            for hash_ in self._list_hashes(waiting.facts.at_ms) if waiting.facts is not None else ():
                sums[hash_].update(counts)
        args: list[str | int] = []
        for (_, lifetime_ms), total in sums.items():
            args += [lifetime_ms, len(total)]
            args += [part for (metric, name), by in total.items() for part in (metric, name, by)]
        return [key for key, _ in sums], args

    async def read_hours(self, first: int, last: int) -> list[Counter[Count]]:
        """Return the counters of these hours since 1970, one after the other."""
        return await self._read(self._keys.figures_of_hour(hour) for hour in range(first, last + 1))

    async def read_days(self, first: int, last: int) -> list[Counter[Count]]:
        """Return the counters of these days since 1970, one after the other, in UTC."""
        return await self._read(self._keys.figures_of_day(day) for day in range(first, last + 1))

    async def _read(self, names: Iterable[str]) -> list[Counter[Count]]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.hgetall(name)
            hashes: list[Any] = await pipe.execute()
        return await asyncio.to_thread(lambda: [*map(_parse_counts, hashes)])

    def _list_hashes(self, at_ms: int) -> tuple[tuple[str, int], ...]:
        hour = (self._keys.figures_of_hour(at_ms // HOUR_MS), HOURS_KEPT * HOUR_MS + _SPARE_MS)
        return hour, (self._keys.figures_of_day(at_ms // DAY_MS), DAYS_KEPT * DAY_MS + _SPARE_MS)


def _parse_counts(fields: Mapping[bytes | str, bytes]) -> Counter[Count]:
    counts: Counter[Count] = Counter()
    for field, by in fields.items():
        metric, _, name = text(field).partition(":")
        counts[metric, name] = int(by)
    return counts


def _parse(stored: bytes) -> Facts | None:
    try:
        return read_facts(stored)
    except ValidationError:
        return None
