"""Suspensions whose cards need an attempt at a delivery. The commit of a suspension writes them."""

from typing import Any

from sayso.core.transitions.deliveries import next_delivery_ms
from service.store.connection.commits import Commit, Update
from service.store.connection.connecting import text, translated
from service.store.keys import TenantKeys
from service.store.tenants import TenantStore


def queue_cards(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """List the suspension under the next moment at which one of its cards needs an attempt."""
    for before, after in update.pairs:
        at_ms = next_delivery_ms(after)
        if at_ms is not None:
            commit.write("ZADD", keys.cards, at_ms, after.id)
        elif before is not None and next_delivery_ms(before) is not None:
            commit.write("ZREM", keys.cards, after.id)


class CardQueue:
    """The suspensions of one tenant with deliveries to attempt."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def due(self, now_ms: int, limit: int = 500) -> list[str]:
        """Return suspensions with a due delivery, the most overdue first."""
        async with translated():
            members: list[Any] = await self._redis.zrangebyscore(self._keys.cards, "-inf", now_ms, start=0, num=limit)
        return [text(member) for member in members]

    async def defer(self, suspension_id: str, again_at_ms: int) -> None:
        """Postpone the next attempt, unless nothing is left to send."""
        async with translated():
            await self._redis.zadd(self._keys.cards, {suspension_id: again_at_ms}, xx=True)

    async def forget(self, suspension_id: str) -> None:
        """Remove a suspension that is gone or has nothing to send."""
        async with translated():
            await self._redis.zrem(self._keys.cards, suspension_id)

    async def bring_forward(self, now_ms: int) -> None:
        """Make every attempt due now, after the clock went back: an early attempt does no harm."""
        async with translated():
            later: list[Any] = await self._redis.zrangebyscore(self._keys.cards, f"({now_ms}", "+inf")
            if later:
                await self._redis.zadd(self._keys.cards, {text(member): now_ms for member in later}, xx=True)
