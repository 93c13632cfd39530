"""API keys, sessions and instances of all tenants, by the hash of their token."""

from sayso.core.records.base import Immutable
from service.store.connection.connecting import translated
from service.store.keys import INSTANCE_KEYS, KEYS, SESSIONS, keys_of
from service.store.people import ApiKey, Session
from service.store.suspensions.reading import try_read
from service.store.tenants import Connections


class InstanceKey(Immutable):
    """The instance of a credential of the Agent Approval Protocol."""

    tenant: str
    instance_id: str


class Tokens:
    """Look-ups by the hash of a token, for all tenants."""

    def __init__(self, connections: Connections) -> None:
        self._redis, self._pipeline = connections.redis, connections.changes

    async def find(self, token_hash: str) -> ApiKey | Session | None:
        """Return the key or the session of a token, or None."""
        async with translated():
            key, session = await self._pipeline.ask_all(("GET", KEYS + token_hash), ("GET", SESSIONS + token_hash))
        if key is not None:
            return try_read(ApiKey, key)
        return try_read(Session, session) if session is not None else None

    async def find_key(self, token_hash: str) -> ApiKey | None:
        async with translated():
            raw = await self._redis.get(KEYS + token_hash)
        return try_read(ApiKey, raw) if raw else None

    async def find_instance(self, token_hash: str) -> InstanceKey | None:
        async with translated():
            raw = await self._redis.get(INSTANCE_KEYS + token_hash)
        return try_read(InstanceKey, raw) if raw else None

    async def extend_session(self, token_hash: str, idle_ms: int) -> bool:
        """Restart the idle time of a session; return False if it has ended."""
        async with translated():
            return bool(await self._pipeline.ask("PEXPIRE", SESSIONS + token_hash, idle_ms))

    async def note_use(self, tenant: str, holder: str, at_ms: int) -> None:
        """Record when a key or a person was last here."""
        async with translated():
            await self._redis.hset(keys_of(tenant).used, holder, at_ms)

    async def close_session(self, token_hash: str) -> None:
        async with translated():
            await self._redis.delete(SESSIONS + token_hash)
