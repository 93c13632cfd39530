"""Tokens of apps that an admin installed by OAuth, and the states of installations under way."""

from redis.asyncio.client import Pipeline

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

STATE_MS = 600_000
"""How long an admin has to confirm an installation at the provider."""


class Installs:
    """The installed apps of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def save_state(self, state_hash: str, owner: str) -> None:
        """Save the hash of a new state with its owner: the session and the channel."""
        async with translated():
            await self._redis.set(self._keys.install_state(state_hash), owner, px=STATE_MS)

    async def take_state(self, state_hash: str) -> str | None:
        """Return a state's owner and delete it; None for an unknown one."""
        async with translated():
            owner = await self._redis.getdel(self._keys.install_state(state_hash))
        return text(owner) if owner is not None else None

    async def save_token(self, channel: str, sealed: str) -> None:
        """Save the encrypted token of a channel's app; it replaces an earlier one."""
        async with translated():
            await self._redis.set(self._keys.channel_token(channel), sealed)

    async def replace_token(self, channel: str, before: str, after: str) -> None:
        """Save the token as encrypted anew, unless another was saved meanwhile."""
        key = self._keys.channel_token(channel)

        async def write(pipe: Pipeline) -> None:
            current = await pipe.get(key)
            pipe.multi()  # type: ignore[no-untyped-call]
            if current is not None and text(current) == before:
                pipe.set(key, after)

        async with translated():
            await self._redis.transaction(write, key)

    async def find_token(self, channel: str) -> str | None:
        """Return the encrypted token of a channel's app, or None."""
        async with translated():
            token = await self._redis.get(self._keys.channel_token(channel))
        return text(token) if token is not None else None
