"""Hand a message that is to be delivered to one attempt at a time, and keep what became of it.

An attempt is a claim that lasts longer than the attempt can. Whoever claims names the version it saw, so that of all
who deliver one does; after a crash the claim is over by itself and the message is tried again. The list of what is due
is a hint: the message itself says from when on it may be tried.
"""

from dataclasses import dataclass
from typing import Any

from service.store.connection.connecting import text, translated
from service.store.lua import read_script
from service.store.suspensions.commits import Commit
from service.store.suspensions.outbox import Delivery, pack_delivery
from service.store.tenants import TenantStore

CLAIM_MS = 30_000
"""Three times as long as an attempt may take."""

KEPT_MS = 86_400_000
"""How long a message is kept once it has ended."""

_COMMIT = read_script("commit")


@dataclass(frozen=True)
class Waiting:
    """A message as it stands in the store."""

    delivery: Delivery
    version: int


class Deliveries:
    """Messages by the moment at which they are to be tried next."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._commit = store.redis.register_script(_COMMIT)

    async def due(self, now_ms: int, limit: int = 200) -> list[str]:
        """Return what is to be tried now, the longest due first."""
        async with translated():
            found: list[Any] = await self._redis.zrangebyscore(
                self._keys.deliveries, "-inf", now_ms, start=0, num=limit
            )
        return [text(one) for one in found]

    async def read(self, event_id: str) -> Waiting | None:
        """Return a message, or None where it is gone."""
        async with translated():
            raw = await self._redis.get(self._keys.delivery(event_id))
        if raw is None:
            return None
        version, _, body = text(raw).partition("|")
        return Waiting(Delivery.model_validate_json(body), int(version))

    async def claim(self, seen: Waiting, now_ms: int) -> Waiting | None:
        """Take a message for one attempt; None when somebody else was faster, or has it already."""
        if now_ms < seen.delivery.not_before_ms:
            return None
        taken = seen.delivery.model_copy(update={"tries": seen.delivery.tries + 1})
        return await self._save(seen, taken, now_ms + CLAIM_MS)

    async def postpone(self, claimed: Waiting, again_at_ms: int) -> bool:
        """Give a message back for a later attempt; False when the claim was over."""
        return await self._save(claimed, claimed.delivery, again_at_ms) is not None

    async def end(self, seen: Waiting, how: str, now_ms: int) -> bool:
        """Try a message no more: it was delivered, or nobody is to be told any more. False when the claim was over."""
        ended = seen.delivery.model_copy(update={"ended": how, "ended_at_ms": now_ms})
        return await self._save(seen, ended, None) is not None

    async def defer(self, name: str, again_at_ms: int) -> None:
        """Look at something later, so that it does not stand in the way of the others."""
        async with translated():
            await self._redis.zadd(self._keys.deliveries, {name: again_at_ms}, xx=True)

    async def follow_back(self, back_ms: int, now_ms: int) -> None:
        """Have what was put off by a clock that went back since tried that much sooner. Done twice, it does no harm."""
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
        """Take off what is no message any more."""
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
        names, args = commit.arguments()
        async with translated():
            failed_guard, *_ = await self._commit(keys=names, args=args)
        return None if failed_guard else Waiting(now, seen.version + 1)
