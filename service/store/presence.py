"""Who has which item's page open. It lasts for seconds and is part of no record."""

from collections import defaultdict
from typing import Any, NamedTuple

from service.store.connection.connecting import text, translated
from service.store.keys import CHANGES
from service.store.tenants import TenantStore

LASTS_MS = 25_000
"""How long a page counts as open after its last message; it sends one every 10 seconds."""


class Present(NamedTuple):
    """The people at each item, by the id of its row, and the time at which the first of them is gone; 0 for nobody."""

    people: dict[str, list[str]]
    until_ms: int


class Presence:
    """The open pages of one tenant's items."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self.topic = f"presence:{store.keys.tenant}"

    async def note(self, row_id: str, person: str, now_ms: int) -> None:
        """Record that a person has the item's page open, and wake the pages that show it if that is new."""
        async with translated():
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.zremrangebyscore(self._keys.presence, "-inf", now_ms)
                pipe.zadd(self._keys.presence, {f"{row_id} {person}": now_ms + LASTS_MS})
                pipe.pexpire(self._keys.presence, LASTS_MS)
                _, added, _ = await pipe.execute()
            if added:
                await self._redis.publish(CHANGES + self.topic, "")

    async def forget(self, row_id: str, person: str) -> None:
        """Record that the person has left the page."""
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.zrem(self._keys.presence, f"{row_id} {person}")
            pipe.publish(CHANGES + self.topic, "")
            await pipe.execute()

    async def read(self, now_ms: int) -> Present:
        """Return everybody who has an item open."""
        async with translated():
            views: list[Any] = await self._redis.zrangebyscore(self._keys.presence, now_ms, "+inf", withscores=True)
        people: dict[str, list[str]] = defaultdict(list)
        for name, _ in views:
            row_id, _, person = text(name).partition(" ")
            people[row_id].append(person)
        return Present({row_id: sorted(names) for row_id, names in people.items()}, int(views[0][1]) if views else 0)
