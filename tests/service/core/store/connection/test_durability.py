"""Programs refuse a store that may lose confirmed writes, unless the setting allows it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.errors import Unavailable
from service.core.store.connection.connecting import WANTED, WeakDurability, check_durability, connect


@pytest.fixture
async def redis(clean_store_url: str) -> AsyncIterator[Redis]:
    """The store, set back to what it was afterwards."""
    async with connect(clean_store_url) as client:
        yield client
        for name, value in WANTED.items():
            await client.config_set(name, value)


async def test_a_store_as_we_start_it_is_durable(clean_store_url: str) -> None:
    assert await check_durability(clean_store_url, allow_weak=False) is None


@pytest.mark.parametrize(
    ("name", "value"), [("appendfsync", "everysec"), ("appendonly", "no"), ("maxmemory-policy", "allkeys-lru")]
)
async def test_each_weakness_is_named_and_refused_unless_it_is_allowed(
    redis: Redis, clean_store_url: str, name: str, value: str
) -> None:
    await redis.config_set(name, value)
    with pytest.raises(WeakDurability) as refused:
        await check_durability(clean_store_url, allow_weak=False)
    assert f"{name} is {value}, not {WANTED[name]}" in refused.value.message
    assert "SAYSO_ALLOW_WEAK_DURABILITY" in refused.value.message
    assert await check_durability(clean_store_url, allow_weak=True) == f"{name} is {value}, not {WANTED[name]}"


async def test_store_with_unknown_durability_counts_as_weak(redis: Redis, clean_store_url: str) -> None:
    await redis.acl_setuser(
        "guest", enabled=True, nopass=True, keys=["*"], channels=["*"], categories=["+@all"], commands=["-config"]
    )
    url = clean_store_url.replace("unix://", "unix://guest:any@")
    assert "CONFIG GET is refused" in str(await check_durability(url, allow_weak=True))
    with pytest.raises(WeakDurability, match=r"CONFIG GET is refused.*SAYSO_STORE_DURABILITY=stated"):
        await check_durability(url, allow_weak=False)
    assert await check_durability(url, allow_weak=False, stated=True) is None


async def test_a_statement_does_not_outweigh_what_the_store_tells(redis: Redis, clean_store_url: str) -> None:
    await redis.config_set("appendfsync", "everysec")
    with pytest.raises(WeakDurability, match="appendfsync is everysec"):
        await check_durability(clean_store_url, allow_weak=False, stated=True)


async def test_a_store_that_does_not_come_up_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is no such socket"):
        await check_durability(f"unix://{tmp_path}/nobody.sock", allow_weak=True, wait_s=0.3)
