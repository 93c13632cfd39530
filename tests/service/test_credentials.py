"""A credential is looked up once for all who ask at the same time, and never remembered beyond its end."""

import asyncio

import pytest
from redis.asyncio import Redis

from sayso.errors import NotAuthenticated
from service.settings import Settings
from service.wiring import wire
from tests.builders import make_agent


async def gets(redis: Redis) -> int:
    stats = await redis.info("commandstats")
    return int(stats.get("cmdstat_get", {}).get("calls", 0))


async def test_many_who_ask_at_once_with_one_key_take_one_look(clean_store_url: str) -> None:
    async with wire(Settings(redis_url=clean_store_url)) as wiring, Redis.from_url(clean_store_url) as redis:
        key = await make_agent(wiring, "demo")
        await redis.config_resetstat()
        found = await asyncio.gather(*(wiring.credentials.identify(key) for _ in range(500)))
        assert {one.name for one in found} == {"demo"}
        assert await gets(redis) == 1


async def test_who_gives_up_waiting_for_the_look_does_not_spoil_it_for_the_others(clean_store_url: str) -> None:
    async with wire(Settings(redis_url=clean_store_url)) as wiring:
        key = await make_agent(wiring, "demo")
        first, second = (asyncio.create_task(wiring.credentials.identify(key)) for _ in range(2))
        await asyncio.sleep(0)  # both have asked
        first.cancel()
        assert (await second).name == "demo"


async def test_a_look_that_nobody_waited_for_is_not_believed_later(clean_store_url: str) -> None:
    async with wire(Settings(redis_url=clean_store_url)) as wiring:
        key = await make_agent(wiring, "demo")
        asking = asyncio.create_task(wiring.credentials.identify(key))
        await asyncio.sleep(0)  # it has asked
        asking.cancel()
        (kept,) = await wiring.credentials.list_keys("default")
        await wiring.credentials.revoke_key("default", kept.id)
        with pytest.raises(NotAuthenticated):
            await wiring.credentials.identify(key)
