"""The queue of facts and the counters of one tenant.

Each fact counts once, in its hour and day, however many processes count it and however often; the figures are those of
the trail.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from sayso.core.clock import DAY_MS, HOUR_MS
from service.store.connection.connecting import text, translated
from service.store.insights.facts import Facts, read_facts
from service.store.insights.tallies import Count
from service.store.load.starts import Starts
from service.store.lua import read_script
from service.store.tenants import TenantStore

HOURS_KEPT = 14 * 24
DAYS_KEPT = 180
"""Twice the longest range, because a figure is shown with that of the time before it."""

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
        async with translated():
            members: list[Any] = await self._redis.zrange(self._keys.facts, 0, limit - 1)
        return [Waiting(member, _parse(member)) for member in members]

    async def count(self, tallied: Sequence[tuple[Waiting, Mapping[Count, int]]]) -> int:
        """Add what facts count, and remove them from the queue; return how many were still there."""
        pending = {waiting.stored: (waiting, counts) for waiting, counts in tallied}
        while pending:
            stored = [*pending]
            keys, args = self._add_up(pending.values())
            async with translated():
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
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
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
