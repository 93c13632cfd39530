"""Presence lasts for seconds and leaves nothing behind."""

from redis.asyncio import Redis

from service.features.discussions.store import LASTS_MS, Presence
from tests.builders import store_of


async def test_presence_ends_without_another_message(redis: Redis) -> None:
    presence = Presence(store_of(redis))
    await presence.note("sus_1-i1", "ben", 1_000)
    await presence.note("sus_1-i1", "anna", 2_000)
    await presence.note("sus_2-i1", "anna", 3_000)
    found = await presence.read(3_000)
    assert found.people == {"sus_1-i1": ["anna", "ben"], "sus_2-i1": ["anna"]}
    assert found.until_ms == 1_000 + LASTS_MS
    assert (await presence.read(1_001 + LASTS_MS)).people == {"sus_1-i1": ["anna"], "sus_2-i1": ["anna"]}
    await presence.note("sus_1-i1", "anna", 9_000)
    assert (await presence.read(3_001 + LASTS_MS)).people == {"sus_1-i1": ["anna"]}
    await presence.forget("sus_1-i1", "anna")
    assert (await presence.read(3_001 + LASTS_MS)).people == {}


async def test_presence_has_a_lifetime_in_the_store(redis: Redis) -> None:
    await Presence(store_of(redis)).note("sus_1-i1", "ben", 1_000)
    (key,) = [key async for key in redis.scan_iter(match="*presence*")]
    assert 0 < await redis.pttl(key) <= 30_000
