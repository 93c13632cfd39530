"""A store that refuses is distinguished from one that is away."""

import pytest
from redis.exceptions import ResponseError

from sayso.errors import Unavailable
from service.core.store.connection.connecting import connect, connect_blocking, is_refusal
from service.core.store.connection.pipeline import Pipeline


async def test_refusal_of_the_store_is_reported_verbatim(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis:
        await redis.acl_setuser("default", enabled=True, commands=["-hset"])
        try:
            with pytest.raises(Unavailable, match=r"refuses what Sayso asks of it: .*hset"):
                await redis.hset("key", "field", "value")
        finally:
            await redis.acl_setuser("default", enabled=True, commands=["+hset"])


async def test_a_full_store_is_not_said_to_be_away(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis:
        await redis.config_set("maxmemory", 1)
        try:
            with pytest.raises(Unavailable, match=r"refuses this just now: .*maxmemory"):
                await redis.set("key", "value")
        finally:
            await redis.config_set("maxmemory", 0)


async def test_refusal_inside_a_pipeline_is_known(clean_store_url: str) -> None:
    """redis-py puts its own words before those of the server."""
    async with connect(clean_store_url) as redis:
        await redis.config_set("maxmemory", 1)
        try:
            writes = redis.pipeline(transaction=False)
            writes.set("key", "value")
            with pytest.raises(Unavailable, match="refuses this just now") as caught:
                await writes.execute()
        finally:
            await redis.config_set("maxmemory", 0)
    assert is_refusal(caught.value.__cause__ or caught.value)
    assert not is_refusal(ResponseError("WRONGTYPE Operation against a key"))


async def test_refusal_of_one_of_several_commands_is_reported_as_one(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis:
        pipeline = Pipeline(redis)
        await redis.config_set("maxmemory", 1)
        try:
            with pytest.raises(Unavailable, match="refuses this just now"):
                await pipeline.ask_all(("GET", "key"), ("SET", "key", "value"))
        finally:
            await redis.config_set("maxmemory", 0)
            pipeline.close()


def test_blocking_client_over_a_unix_socket_has_a_port() -> None:
    """redis-py 7.2.0, which AFK pins, reads it after every command."""
    connection = connect_blocking("unix:///tmp/store.sock").connection_pool.make_connection()
    assert getattr(connection, "port", None) == 0
