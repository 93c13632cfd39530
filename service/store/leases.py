"""Leases by name: one process at a time does what others would do twice, such as polling a provider."""

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

LEASE_MS = 15_000
"""How long a lease is held without renewal; after a crash another process takes over."""


class NamedLeases:
    """The leases of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def hold(self, name: str, holder: str) -> bool:
        """Take the lease, or renew one's own; False while another process holds it."""
        key = self._keys.lease(name)
        async with translated():
            if await self._redis.set(key, holder, nx=True, px=LEASE_MS):
                return True
            held = await self._redis.get(key)
            if held is None or text(held) != holder:
                return False
            return bool(await self._redis.pexpire(key, LEASE_MS))

    async def release(self, name: str, holder: str) -> None:
        """Give up one's own lease."""
        key = self._keys.lease(name)
        async with translated():
            held = await self._redis.get(key)
            if held is not None and text(held) == holder:
                await self._redis.delete(key)
