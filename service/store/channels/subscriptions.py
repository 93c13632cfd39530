"""Browsers' subscriptions to notifications, and the key that signs what is sent to them."""

from hashlib import sha256
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore


class Subscription(BaseModel):
    """A browser's address at its push service, and the keys to encrypt for it. The endpoint is a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: str
    p256dh: str
    auth: str

    @property
    def address(self) -> str:
        """The name in contacts and deliveries: the push service's host, and a digest of the endpoint."""
        return f"{urlsplit(self.endpoint).netloc}/{sha256(self.endpoint.encode()).hexdigest()[:24]}"


class Subscriptions:
    """The subscriptions of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def save(self, subscription: Subscription) -> None:
        """Save a subscription, or replace the keys of the same endpoint."""
        async with translated():
            await self._redis.hset(self._keys.subscriptions, subscription.address, subscription.model_dump_json())

    async def find(self, address: str) -> Subscription | None:
        """Return a subscription, or None; raises `Unreadable` for one of a later version."""
        async with translated():
            raw = await self._redis.hget(self._keys.subscriptions, address)
        return self._readings.require_other(Subscription, raw, f"subscription {address[:80]}") if raw else None

    async def delete(self, address: str) -> None:
        """Delete a subscription; nothing happens without it."""
        async with translated():
            await self._redis.hdel(self._keys.subscriptions, address)

    async def keep_key(self, fresh: str) -> str:
        """Return the saved private key; the first call saves `fresh`. Browsers subscribe to one key for good."""
        async with translated():
            await self._redis.set(self._keys.vapid, fresh, nx=True)
            saved = await self._redis.get(self._keys.vapid)
        return text(saved or fresh)
