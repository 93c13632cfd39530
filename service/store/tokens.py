"""API keys, sessions and instances of all tenants, by the hash of their token."""

from redis.asyncio import Redis

from sayso.records.base import Immutable
from service.store.connection.connecting import translated
from service.store.keys import INSTANCE_KEYS, KEYS, SESSIONS, keys_of
from service.store.people import ApiKey, Session


class InstanceKey(Immutable):
    """The instance of a credential of the Agent Approval Protocol."""

    tenant: str
    instance_id: str


class Tokens:
    """Look-ups by the hash of a token, for all tenants."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def find_key(self, token_hash: str) -> ApiKey | None:
        async with translated():
            raw = await self._redis.get(KEYS + token_hash)
        return ApiKey.model_validate_json(raw) if raw else None

    async def find_instance(self, token_hash: str) -> InstanceKey | None:
        async with translated():
            raw = await self._redis.get(INSTANCE_KEYS + token_hash)
        return InstanceKey.model_validate_json(raw) if raw else None

    async def use_session(self, token_hash: str, idle_ms: int | None) -> Session | None:
        """Return the session, or None, and restart its idle time; with None for `idle_ms` only read it."""
        async with translated():
            if idle_ms is None:
                raw = await self._redis.get(SESSIONS + token_hash)
            else:
                raw = await self._redis.getex(SESSIONS + token_hash, px=idle_ms)
        return Session.model_validate_json(raw) if raw else None

    async def note_use(self, tenant: str, holder: str, at_ms: int) -> None:
        """Record when a key or a person was last here."""
        async with translated():
            await self._redis.hset(keys_of(tenant).used, holder, at_ms)

    async def close_session(self, token_hash: str) -> None:
        async with translated():
            await self._redis.delete(SESSIONS + token_hash)
