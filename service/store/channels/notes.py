"""What channels remember between messages: positions in a provider's feed, and prompts that wait for a reply."""

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore


class ChannelNotes:
    """The notes of one tenant's channels, each for a limited time."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def save(self, channel: str, name: str, note: str, valid_ms: int) -> None:
        """Save a note, in place of an earlier one of that name."""
        async with translated():
            await self._redis.set(self._keys.channel_note(channel, name), note, px=valid_ms)

    async def read(self, channel: str, name: str) -> str | None:
        """Return a note, or None if there is none or its time is over."""
        async with translated():
            note = await self._redis.get(self._keys.channel_note(channel, name))
        return text(note) if note is not None else None
