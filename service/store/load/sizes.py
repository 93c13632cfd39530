"""Sizes and first entries of the store's lists. The cost of a reading does not grow with them."""

from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.core.records.suspensions import RunStatus
from service.store.connection.connecting import as_ms, text, translated
from service.store.suspensions.outbox import LANE
from service.store.tenants import TenantStore

AGES_MS = {"under_1m": (0, 60_000), "under_1h": (60_000, HOUR_MS), "under_1d": (HOUR_MS, DAY_MS), "older": (DAY_MS, 0)}
"""Bands of ages: from the first to below the second, ms; 0 is no limit."""

_COUNTED = tuple(status for status in RunStatus if status is not RunStatus.SUSPENDED)
_MOST_LANES = 1_000


class Overdue(NamedTuple):
    """How many entries of a list are due, and since when the first is, ms; 0 without one."""

    total: int
    since_ms: int


class Messages(NamedTuple):
    """Signed messages to webhook endpoints and instances: those that wait, and those whose last attempt failed."""

    queued: int
    failed: int


class Sizes:
    """Reads the sizes of one tenant's lists."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def count_open(self) -> dict[str, int]:
        """Return how many items are open by age, as limits count them: a run that a worker drives counts as one."""
        now_ms = await self._now_ms()
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
            for from_ms, below_ms in AGES_MS.values():
                first = f"({now_ms - below_ms}" if below_ms else "-inf"
                pipe.zcount(self._keys.open, first, now_ms - from_ms if from_ms else "+inf")
            counts: list[int] = await pipe.execute()
        return dict(zip(AGES_MS, counts, strict=True))

    async def find_overdue(self) -> Overdue:
        """Return what the clock process should have done already."""
        now_ms, key = await self._now_ms(), self._keys.schedule
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
            pipe.zcount(key, "-inf", now_ms)
            pipe.zrange(key, 0, 0, withscores=True)
            count, first = await pipe.execute()
        return Overdue(int(count), max(0, now_ms - int(first[0][1])) if first else 0)

    async def count_runs(self) -> dict[RunStatus, int]:
        """Return how many runs are kept in each status; each suspended one is in the inbox."""
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
            pipe.zcard(self._keys.inbox)
            for status in _COUNTED:
                pipe.zcard(self._keys.runs(status))
            counts: list[int] = await pipe.execute()
        return dict(zip((RunStatus.SUSPENDED, *_COUNTED), counts, strict=True))

    async def count_messages(self) -> Messages:
        """Return the messages of the first 1,000 receivers that have any."""
        async with translated():
            lanes: list[Any] = await self._redis.zrange(self._keys.deliveries, 0, _MOST_LANES - 1)
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.zcard(self._keys.failures)
                for lane in map(text, lanes):
                    if lane.startswith(LANE):
                        pipe.zcard(self._keys.lane(lane.removeprefix(LANE)))
                failed, *queued = await pipe.execute()
        return Messages(sum(queued), int(failed))

    async def _now_ms(self) -> int:
        async with translated():
            return as_ms(*await self._redis.time())
