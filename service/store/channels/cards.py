"""Suspensions whose cards need an attempt at a delivery. The commit of a suspension writes them; a claim holds one."""

from typing import Any

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

CLAIM_MS = 3_000
"""How long one process holds a suspension's cards without renewal; after a crash another may send them again."""


class CardQueue:
    """The suspensions of one tenant with deliveries to attempt."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def due(self, now_ms: int, limit: int = 500) -> list[str]:
        """Return suspensions with a due delivery, the most overdue first."""
        async with translated():
            found: list[Any] = await self._redis.zrangebyscore(self._keys.cards, "-inf", now_ms, start=0, num=limit)
        return [text(one) for one in found]

    async def claim(self, suspension_id: str, holder: str) -> bool:
        """Claim a suspension's cards; False while another process has them."""
        async with translated():
            return bool(await self._redis.set(self._keys.card_claim(suspension_id), holder, nx=True, px=CLAIM_MS))

    async def renew(self, suspension_id: str) -> None:
        """Hold the claim for longer, while attempts are under way."""
        async with translated():
            await self._redis.pexpire(self._keys.card_claim(suspension_id), CLAIM_MS)

    async def release(self, suspension_id: str) -> None:
        """End the claim."""
        async with translated():
            await self._redis.delete(self._keys.card_claim(suspension_id))

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
                await self._redis.zadd(self._keys.cards, {text(one): now_ms for one in later}, xx=True)
