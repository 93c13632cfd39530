"""How late workers take runs from the ready list, counted in the store by all workers.

A worker's process ends with its job after some seconds, so its own counters would be lost.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

BOUNDS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
_SUM = "ms"
_OVER = "over"


class StartDelays(NamedTuple):
    """How many runs began after at most each of `BOUNDS_MS`, how many in total, and the sum of the delays, ms."""

    within: tuple[int, ...]
    total: int
    sum_ms: int


class Starts:
    """The delays between a run's place on the ready list and its worker, of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def add(self, fields: Mapping[str, int]) -> None:
        """Add counts, as `count_delay` returns them."""
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            for field, by in fields.items():
                pipe.hincrby(self._keys.starts, field, by)
            await pipe.execute()

    async def read(self) -> StartDelays:
        """Return the sums of all workers since the store was new."""
        async with translated():
            fields = await self._redis.hgetall(self._keys.starts)
        counts = {text(field): int(by) for field, by in fields.items()}
        within = tuple(accumulate(counts.get(str(bound), 0) for bound in BOUNDS_MS))
        return StartDelays(within, within[-1] + counts.get(_OVER, 0), counts.get(_SUM, 0))


def count_delay(delay_ms: int) -> Counter[str]:
    """Return the counts of one start."""
    place = bisect_left(BOUNDS_MS, delay_ms)
    return Counter({str(BOUNDS_MS[place]) if place < len(BOUNDS_MS) else _OVER: 1, _SUM: max(0, delay_ms)})
