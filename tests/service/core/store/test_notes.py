"""Notes of channels: by channel and name, for a limited time."""

from redis.asyncio import Redis

from service.core.store.channels import ChannelNotes
from service.core.wiring import Wiring


async def test_note_belongs_to_its_channel_and_expires(wiring: Wiring, clean_store_url: str) -> None:
    notes = wiring.part(ChannelNotes)
    await notes.save("tg", "position", "7", 60_000)
    await notes.save("tg", "position", "8", 60_000)
    assert await notes.read("tg", "position") == "8"
    assert await notes.read("other", "position") is None
    async with Redis.from_url(clean_store_url) as redis:
        (key,) = [name async for name in redis.scan_iter("*channel-note:*")]
        assert 0 < await redis.pttl(key) <= 60_000
