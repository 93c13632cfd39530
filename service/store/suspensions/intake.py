"""Limits on requests: their pace and the number of open items, for each owner and for all."""

from math import ceil
from typing import NamedTuple

from sayso.errors import TooManyRequests
from service.settings import Settings
from service.store.connection.connecting import text, translated
from service.store.connection.pipeline import Script
from service.store.load.backlog import Backlog
from service.store.lua import read_script
from service.store.suspensions.commits import Room
from service.store.suspensions.schedule import Schedule
from service.store.tenants import TenantStore

_PACE = Script(read_script("pace"))
_MINUTE_US = 60_000_000


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

    async def admit(self, owner: str, *, for_workers: bool = False) -> None:
        """Count one request to suspend or to start a run; raises `TooManyRequests` over the pace.

        One whose calls are `for_workers` is not counted but refused while workers are behind.
        """
        if for_workers:
            await self._backlog.admit()
        keys = self._keys
        paces = (self.limits.asks_per_minute_per_key, self.limits.asks_per_minute)
        words = [word for pace in paces for word in (_MINUTE_US // pace, _MINUTE_US)]
        async with translated():
            answer: list[int] = await self._pipeline.run(_PACE, [keys.pace_of(owner), keys.pace], words)
        if not answer[0]:
            return
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
            owners = sorted(text(one) for one in await self._redis.smembers(keys.owners))
            async with self._redis.pipeline(transaction=False) as pipe:
                for key in (keys.open, *map(keys.open_of, owners)):
                    pipe.zcard(key)
                count, *each = await pipe.execute()
        most, owner = max(zip(each, owners, strict=True), default=(0, ""))
        return Opened(int(count), int(most), owner)
