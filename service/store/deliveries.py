"""Signed messages and their delivery.

An attempt claims a message by its version, so that one process sends it. A claim lasts longer than an attempt; after a
crash it expires and the message is sent again. The list of due messages is a hint; the message holds the time.
"""

from typing import Any, NamedTuple

from service.store.connection.connecting import text, translated
from service.store.suspensions.commits import Commit
from service.store.suspensions.outbox import Delivery, pack_delivery
from service.store.tenants import TenantStore

CLAIM_MS = 30_000  # three times as long as an attempt may take
KEPT_MS = 86_400_000  # how long a message is kept after its end


class Waiting(NamedTuple):
    """A stored message with its version."""

    delivery: Delivery
    version: int


class Deliveries:
    """The messages of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._send = store.send

    async def due(self, now_ms: int, limit: int = 200) -> list[str]:
        """Return due messages, the most overdue first."""
        async with translated():
            found: list[Any] = await self._redis.zrangebyscore(
                self._keys.deliveries, "-inf", now_ms, start=0, num=limit
            )
        return [text(one) for one in found]

    async def read(self, event_id: str) -> Waiting | None:
        async with translated():
            raw = await self._redis.get(self._keys.delivery(event_id))
        if raw is None:
            return None
        version, _, body = text(raw).partition("|")
        return Waiting(Delivery.model_validate_json(body), int(version))

    async def claim(self, seen: Waiting, now_ms: int) -> Waiting | None:
        """Claim a message for one attempt; None if another process has it."""
        if now_ms < seen.delivery.not_before_ms:
            return None
        taken = seen.delivery.model_copy(update={"tries": seen.delivery.tries + 1})
        return await self._save(seen, taken, now_ms + CLAIM_MS)

    async def postpone(self, claimed: Waiting, again_at_ms: int) -> bool:
        """Return a message for a later attempt; False if the claim has expired."""
        return await self._save(claimed, claimed.delivery, again_at_ms) is not None

    async def end(self, seen: Waiting, how: str, now_ms: int) -> bool:
        """End a message, delivered or not; False if the claim has expired."""
        ended = seen.delivery.model_copy(update={"ended": how, "ended_at_ms": now_ms})
        return await self._save(seen, ended, None) is not None

    async def defer(self, name: str, again_at_ms: int) -> None:
        """Postpone a message, so that it does not delay the others."""
        async with translated():
            await self._redis.zadd(self._keys.deliveries, {name: again_at_ms}, xx=True)

    async def follow_back(self, back_ms: int, now_ms: int) -> None:
        """Move postponed messages forward after the clock went back; idempotent."""
        async with translated():
            later: list[Any] = await self._redis.zrangebyscore(self._keys.deliveries, f"({now_ms}", "+inf")
        for name in map(text, later):
            seen = await self.read(name)
            if seen is None:
                await self.defer(name, now_ms)
            elif seen.delivery.ended is None:
                again_at_ms = max(now_ms, seen.delivery.not_before_ms - back_ms)
                await self._save(seen, seen.delivery, again_at_ms)

    async def forget(self, name: str) -> None:
        """Remove the id of a message that is gone."""
        async with translated():
            await self._redis.zrem(self._keys.deliveries, name)

    async def _save(self, seen: Waiting, now: Delivery, next_at_ms: int | None) -> Waiting | None:
        keys = self._keys
        commit = Commit()
        commit.expect(keys.delivery(now.id), seen.version)
        now = now.model_copy(update={"not_before_ms": next_at_ms or 0})
        packed = pack_delivery(now, seen.version + 1)
        if next_at_ms is None:
            commit.write("SET", keys.delivery(now.id), packed, "PX", KEPT_MS)
            commit.write("ZREM", keys.deliveries, now.id)
        else:
            commit.write("SET", keys.delivery(now.id), packed)
            commit.write("ZADD", keys.deliveries, next_at_ms, now.id)
        return Waiting(now, seen.version + 1) if await self._send(commit) else None
