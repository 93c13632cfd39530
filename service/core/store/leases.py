"""Leases by name: one process at a time does what others would do twice, such as polling a provider."""

from redis.asyncio.client import Pipeline

from service.core.store.connection.connecting import text, translated
from service.core.store.tenants import TenantStore

LEASE_MS = 15_000
"""How long a lease is held without renewal; after a crash another process takes over."""


class NamedLeases:
    """The leases of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def hold(self, name: str, holder: str, lease_ms: int = LEASE_MS) -> bool:
        """Take the lease, or renew one's own; False while another process holds it."""
        key = self._keys.lease(name)

        async def renew(pipe: Pipeline) -> bool:
            held = await pipe.get(key)
            mine = held is None or text(held) == holder
            pipe.multi()  # type: ignore[no-untyped-call]
            if mine:
                pipe.set(key, holder, px=lease_ms)
            return mine

        async with translated():
            if await self._redis.set(key, holder, nx=True, px=lease_ms):
                return True
            return bool(await self._redis.transaction(renew, key, value_from_callable=True))

    async def release(self, name: str, holder: str) -> None:
        """Give up one's own lease; that of another process stays."""
        key = self._keys.lease(name)

        async def delete(pipe: Pipeline) -> None:
            held = await pipe.get(key)
            pipe.multi()  # type: ignore[no-untyped-call]
            if held is not None and text(held) == holder:
                pipe.delete(key)

        async with translated():
            await self._redis.transaction(delete, key)
