"""Limits on requests: their pace and the number of open items, for each owner and for all."""

from collections.abc import Sequence
from math import ceil, inf
from typing import NamedTuple

from sayso.core.clock import monotonic_ms
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.errors import TooManyRequests
from service.concurrency import Turnstile
from service.settings import Settings
from service.store.connection.connecting import text, translated
from service.store.connection.pipeline import Script
from service.store.load.backlog import Backlog
from service.store.lua import read_script
from service.store.memory.reading import describe_counters, parse_counters
from service.store.suspensions.commits import Room
from service.store.suspensions.schedule import Schedule
from service.store.tenants import TenantStore

_RECALL = "local function recall(KEYS, ARGV)\n" + read_script("recall").partition("]]\n")[2] + "end\n"
_PACE = Script("#!lua\n" + _RECALL + read_script("pace"))
_MINUTE_US = 60_000_000
_CALM_MS = 1_000
MOST_COUNTERS = 200
"""The counters that are read in the round trip of one request."""


class Opened(NamedTuple):
    """The number of open items: of all owners, and of the owner with most."""

    all: int
    most: int
    owner: str


class Intake:
    """The limits from the settings; the store counts for all processes."""

    def __init__(self, store: TenantStore, limits: Settings) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._pipeline = store.connections.intake
        self.limits = limits
        self._backlog = Backlog(Schedule(store), limits, store.connections.refresher)
        self.room = Room(limits.pending_per_key, limits.pending_limit)
        self._refused_at_ms = -inf
        self._turnstile = Turnstile()

    def is_calm(self) -> bool:
        """Return whether this process has refused nothing of late, so that work ahead of an admission pays."""
        return monotonic_ms() - self._refused_at_ms > _CALM_MS

    async def admit(self, owner: str, *, for_workers: bool = False, counters: Sequence[Wanted] = ()) -> Readings:
        """Count one request to suspend or to start a run, and return what these counters of rules hold.

        Raises `TooManyRequests` over the pace. A request whose calls are `for_workers` is not counted but refused while
        workers are behind. Many requests at once take turns, so that decisions come in between.
        """
        await self._turnstile.enter()
        try:
            if for_workers:
                await self._backlog.admit()
            return await self._pace(owner, tuple(dict.fromkeys(counters)))
        except TooManyRequests:
            self._refused_at_ms = monotonic_ms()
            raise

    async def _pace(self, owner: str, counters: Sequence[Wanted]) -> Readings:
        keys = self._keys
        paces = (self.limits.asks_per_minute_per_key, self.limits.asks_per_minute)
        words = [len(paces), *(word for pace in paces for word in (_MINUTE_US // pace, _MINUTE_US))]
        names, args = describe_counters(keys, counters)
        async with translated():
            answer = await self._pipeline.run(_PACE, [keys.pace_of(owner), keys.pace, *names], words + args)
        if not answer[0]:
            return parse_counters(counters, answer[1])
        wait_s = ceil(answer[1] / 1_000_000)
        if answer[0] == 1:
            reason = f"{owner} asked {paces[0]} times within a minute, as often as one key may"
            setting = "SAYSO_ASKS_PER_MINUTE_PER_KEY"
        else:
            reason, setting = f"All keys together asked {paces[1]} times within a minute", "SAYSO_ASKS_PER_MINUTE"
        raise TooManyRequests(f"{reason} ({setting}). Ask again in {wait_s} s.", retry_after_s=wait_s, limit="pace")

    async def count_open(self) -> Opened:
        keys = self._keys
        async with translated():
            owners = sorted(text(owner) for owner in await self._redis.smembers(keys.owners))
            async with self._redis.pipeline(transaction=False) as pipe:
                for key in (keys.open, *map(keys.open_of, owners)):
                    pipe.zcard(key)
                count, *each = await pipe.execute()
        most, owner = max(zip(each, owners, strict=True), default=(0, ""))
        return Opened(int(count), int(most), owner)
