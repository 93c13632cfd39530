"""Named leases: one holder at a time, and nobody gives up the lease of another."""

from redis.asyncio import Redis

from service.core.store.attempts import NamedLeases
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring

KEY = TenantKeys("default").lease("cards")


async def test_lease_has_one_holder_who_can_renew_it(wiring: Wiring, clean_store_url: str) -> None:
    assert await wiring.part(NamedLeases).hold("cards", "one", 60_000)
    assert not await wiring.part(NamedLeases).hold("cards", "two", 60_000)
    assert await wiring.part(NamedLeases).hold("cards", "one", 600_000)
    async with Redis.from_url(clean_store_url) as redis:
        assert await redis.pttl(KEY) > 60_000


async def test_lease_that_expired_and_was_taken_stays_with_its_new_holder(wiring: Wiring, clean_store_url: str) -> None:
    assert await wiring.part(NamedLeases).hold("cards", "one")
    async with Redis.from_url(clean_store_url) as redis:
        await redis.delete(KEY)
    assert await wiring.part(NamedLeases).hold("cards", "two")
    await wiring.part(NamedLeases).release("cards", "one")
    assert not await wiring.part(NamedLeases).hold("cards", "one")
    await wiring.part(NamedLeases).release("cards", "two")
    assert await wiring.part(NamedLeases).hold("cards", "one")
