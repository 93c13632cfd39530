"""Keep what is frozen, and what was: lifted freezes stay as long as anything may wait whose time they held."""

from redis.asyncio import Redis

from sayso.freezes import Freeze
from sayso.terms import LONGEST_WAIT_S
from service.store.connections import translated
from service.store.keys import CHANGES, TenantKeys

_KEPT_MS = 2 * LONGEST_WAIT_S * 1000


class FreezeStore:
    """The freezes of each tenant, a handful at most."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def now_ms(self) -> int:
        """Return the server's time: what deadlines are counted by."""
        async with translated():
            seconds, micros = await self._redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def load(self, tenant: str) -> tuple[Freeze, ...]:
        """Return all freezes that are kept, the oldest first."""
        async with translated():
            found = await self._redis.hvals(TenantKeys(tenant).freezes)
        return tuple(sorted(map(Freeze.model_validate_json, found), key=lambda one: (one.at_ms, one.id)))

    async def save(self, tenant: str, freeze: Freeze) -> None:
        """Keep a freeze, in the place of what was known of it."""
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(TenantKeys(tenant).freezes, freeze.id, freeze.model_dump_json())
            pipe.publish(CHANGES, tenant)  # open pages show what is frozen
            await pipe.execute()

    async def forget_old(self, tenant: str, now_ms: int) -> None:
        """Forget those that were lifted so long ago that nothing can be waiting for it any more."""
        old = [one.id for one in await self.load(tenant) if one.lifted_at_ms and one.lifted_at_ms < now_ms - _KEPT_MS]
        if old:
            async with translated():
                await self._redis.hdel(TenantKeys(tenant).freezes, *old)
