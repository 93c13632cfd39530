"""Sizes of the store's lists, how late workers take runs, and waiting workers; see `docs/decisions/hand-over.md`."""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS, HOUR_MS, monotonic_ms
from sayso.core.records.suspensions import RunStatus
from sayso.core.transitions.execution import WaitingWorker
from sayso.errors import Unavailable
from service.core.store.announcements import LANE
from service.core.store.connection.commits import MOST_HANDED
from service.core.store.connection.connecting import as_ms, text, texts
from service.core.store.connection.pipeline import Script
from service.core.store.keys import TenantKeys
from service.core.store.lua import read_script
from service.core.store.tenants import Connections, StorePart

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


class Memory(NamedTuple):
    """The bytes that the store uses, and its limit; 0 for none."""

    used: int
    limit: int


class Sizes(StorePart):
    """Reads the sizes of one tenant's lists."""

    async def count_open(self) -> dict[str, int]:
        """Return how many items are open by age, as limits count them: a run that a worker drives counts as one."""
        now_ms = as_ms(*await self._redis.time())
        async with self._redis.pipeline(transaction=False) as pipe:
            for from_ms, below_ms in AGES_MS.values():
                first = f"({now_ms - below_ms}" if below_ms else "-inf"
                pipe.zcount(self._keys.open, first, now_ms - from_ms if from_ms else "+inf")
            return dict(zip(AGES_MS, await pipe.execute(), strict=True))

    async def find_overdue(self) -> Overdue:
        """Return what the clock process should have done already."""
        now_ms, key = as_ms(*await self._redis.time()), self._keys.schedule
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zcount(key, "-inf", now_ms)
            pipe.zrange(key, 0, 0, withscores=True)
            count, first = await pipe.execute()
        return Overdue(int(count), max(0, now_ms - int(first[0][1])) if first else 0)

    async def count_runs(self) -> dict[RunStatus, int]:
        """Return how many runs are kept in each status; each suspended one is in the inbox."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zcard(self._keys.inbox)
            for status in _COUNTED:
                pipe.zcard(self._keys.runs(status))
            return dict(zip((RunStatus.SUSPENDED, *_COUNTED), await pipe.execute(), strict=True))

    async def count_messages(self) -> Messages:
        """Return the messages of the first 1,000 receivers that have any."""
        lanes: list[Any] = await self._redis.zrange(self._keys.deliveries, 0, _MOST_LANES - 1)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zcard(self._keys.failures)
            for lane in map(text, lanes):
                if lane.startswith(LANE):
                    pipe.zcard(self._keys.lane(lane.removeprefix(LANE)))
            failed, *queued = await pipe.execute()
        return Messages(sum(queued), int(failed))

    async def read_memory(self) -> Memory:
        """Return how much memory the store uses, with what belongs to others."""
        info = await self._redis.info("memory")
        return Memory(int(info.get("used_memory", 0)), int(info.get("maxmemory", 0)))

    async def count_file_bytes(self) -> int:
        """Return the bytes of all attached files."""
        return int(await self._redis.get(self._keys.file_bytes) or 0)


BOUNDS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
_SUM = "ms"
_OVER = "over"


class Delays(NamedTuple):
    """How many delays were within each of some bounds, how many there were in total, and their sum, ms."""

    within: tuple[int, ...]
    total: int
    sum_ms: int


class Starts(StorePart):
    """The delays between a run's place on the ready list and its worker, of one tenant."""

    async def add(self, fields: Mapping[str, int]) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            for field, by in fields.items():
                pipe.hincrby(self._keys.starts, field, by)
            await pipe.execute()

    async def read(self) -> Delays:
        fields = await self._redis.hgetall(self._keys.starts)
        counts = {text(field): int(by) for field, by in fields.items()}
        within = tuple(accumulate(counts.get(str(bound), 0) for bound in BOUNDS_MS))
        return Delays(within, within[-1] + counts.get(_OVER, 0), counts.get(_SUM, 0))


def count_delay(delay_ms: int) -> Counter[str]:
    """Return the counts of one start."""
    place = bisect_left(BOUNDS_MS, delay_ms)
    return Counter({str(BOUNDS_MS[place]) if place < len(BOUNDS_MS) else _OVER: 1, _SUM: max(0, delay_ms)})


ANNOUNCED_MS = 2_000  # how long a worker counts as waiting after it said so
_FRESH_MS = 500
_KNOWN_MS = 60_000
"""The age up to which a list of waiting workers is used while a new one is read; the commit checks the choice."""

_ABANDONED_MS = 1_000
_ANNOUNCE = Script(read_script("announce"))


class WaitingWorkers:
    """The waiting workers of one tenant, as this process knows them."""

    def __init__(self, connections: Connections, keys: TenantKeys) -> None:
        self._connections, self._keys = connections, keys
        self._known: list[WaitingWorker] = []
        self._read_at_ms = -inf
        self._reading: asyncio.Task[None] | None = None
        self._turn = 0

    async def announce(self, name: str, for_ms: int = ANNOUNCED_MS) -> None:
        """Let decisions hand runs to this worker for a while; for 0 ms ends that."""
        time = await self._connections.changes.run(_ANNOUNCE, [self._keys.waiting], [name, for_ms])
        self._connections.time_read = (as_ms(*time), monotonic_ms())

    async def take_rest(self, name: str) -> list[bytes]:
        """Take what was handed to a worker that has ended its waiting, and forget it."""
        pipeline = self._connections.changes
        entries = await pipeline.ask("LPOP", self._keys.handed(name), MOST_HANDED)
        await pipeline.ask("ZREM", self._keys.waiting, name)
        return entries or []

    async def list_gone(self) -> list[str]:
        """Return the names of the workers that have not said for a while that they wait."""
        pipeline = self._connections.changes
        until_ms = as_ms(*await pipeline.ask("TIME")) - _ABANDONED_MS
        return texts(await pipeline.ask("ZRANGE", self._keys.waiting, "-inf", until_ms, "BYSCORE"))

    async def look(self) -> None:
        """Find out which workers wait. While decisions come often, they do not wait for the answer."""
        age_ms = monotonic_ms() - self._read_at_ms
        if age_ms > _KNOWN_MS:
            await self._read()
        elif age_ms > _FRESH_MS and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read())

    def choose(self) -> WaitingWorker | None:
        """Return a waiting worker, each in its turn; None without any."""
        if not self._known:
            return None
        self._turn += 1
        return self._known[self._turn % len(self._known)]

    def forget(self, name: str) -> None:
        """Choose another worker: this one no longer waits, or has enough before it."""
        self._known = [worker for worker in self._known if worker.name != name]

    async def _read(self) -> None:
        self._read_at_ms = monotonic_ms()
        read_ms, at_ms = self._connections.time_read
        after_ms = read_ms + int(monotonic_ms() - at_ms) if read_ms else 0
        try:
            members = await self._connections.changes.ask("ZRANGE", self._keys.waiting, after_ms, "+inf", "BYSCORE")
        except Unavailable:
            members = []  # runs go to the ready list
        self._known = [WaitingWorker.read(text(member)) for member in members]
