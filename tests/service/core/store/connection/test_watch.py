"""A waiter wakes up for its own changes only, also after connection faults."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis
from redis.exceptions import TimeoutError as RedisTimeoutError

from service.core.store.connection.connecting import connect, text
from service.core.store.connection.watch import Channels, Watch, wait_woken
from service.core.store.keys import CHANGES
from tests.waits import until


@asynccontextmanager
async def watching(url: str) -> AsyncIterator[tuple[Watch, Redis]]:
    """A watch that listens, and a client beside it."""
    async with connect(url, blocking=True) as blocking, connect(url) as redis:
        watch = Watch(blocking)
        listening = asyncio.create_task(watch.listen())
        try:
            yield watch, redis
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def joined(redis: Redis) -> list[str]:
    """The channels that anybody hears."""
    return sorted(text(name) for name in await redis.pubsub_channels(f"{CHANGES}*"))


async def until_joined(redis: Redis, *topics: str) -> None:
    wanted = sorted(f"{CHANGES}{topic}" for topic in topics)

    async def look() -> bool:
        return await joined(redis) == wanted

    await until(look)


async def hang_up(redis: Redis) -> None:
    """Have the store cut every connection that hears a channel."""
    await redis.client_kill_filter(_type="pubsub")


async def test_the_first_wake_up_says_that_whatever_moves_from_now_on_is_heard(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_a") as moved:
            assert await wait_woken(moved, 20)
            assert await redis.publish(f"{CHANGES}run_a", "") == 1
            assert await wait_woken(moved, 20)


async def test_who_comes_later_to_a_topic_that_is_heard_may_read_at_once(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, _):
        with watch.on("run_a") as first:
            assert await wait_woken(first, 20)
            with watch.on("run_a") as second:
                assert second.is_set()
                assert not first.is_set()


async def test_who_comes_back_soon_to_a_topic_may_read_at_once(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_a") as first:
            assert await wait_woken(first, 20)
        with watch.on("run_a") as again:
            assert again.is_set()
            again.clear()
            assert await redis.publish(f"{CHANGES}run_a", "") == 1
            assert await wait_woken(again, 20)
        await until_joined(redis)


async def test_one_bell_rings_for_each_of_its_topics(clean_store_url: str) -> None:
    bell = asyncio.Event()
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_a", bell) as one, watch.on("run_b", bell) as other:
            assert await wait_woken(one, 20)
            assert await wait_woken(other, 20)
            for topic, event in (("run_a", one), ("run_b", other)):
                bell.clear()
                await redis.publish(f"{CHANGES}{topic}", "")
                assert await wait_woken(bell, 20)
                assert event.is_set()


async def test_a_process_hears_only_what_somebody_there_waits_for(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_a") as one, watch.on("run_b") as other:
            assert await wait_woken(one, 20)
            assert await wait_woken(other, 20)
            assert await joined(redis) == [f"{CHANGES}run_a", f"{CHANGES}run_b"]
            assert await redis.publish(f"{CHANGES}run_c", "") == 0
            await redis.publish(f"{CHANGES}run_b", "")
            assert await wait_woken(other, 20)
            assert not one.is_set()
        await until_joined(redis)


async def test_a_topic_is_heard_until_the_last_of_its_waiters_has_left(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_a") as one:
            assert await wait_woken(one, 20)
            with watch.on("run_a"):
                assert await joined(redis) == [f"{CHANGES}run_a"]
            await redis.publish(f"{CHANGES}run_a", "")
            assert await wait_woken(one, 20)
        await until_joined(redis)


@pytest.mark.parametrize("times", [1, 2, 7])
async def test_waiter_that_returns_at_once_misses_nothing(clean_store_url: str, times: int) -> None:
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_b") as settled:
            assert await wait_woken(settled, 20)
        for _ in range(times):
            with watch.on("run_a"):
                pass  # the message of this change is still in flight at the next change
        with watch.on("run_a") as moved:
            await until_joined(redis, "run_a")
            moved.clear()
            await redis.publish(f"{CHANGES}run_a", "")
            assert await wait_woken(moved, 20)


async def test_after_a_lost_connection_everybody_is_woken_and_heard_again(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_a") as one, watch.on("run_b") as other:
            for moved in (one, other):
                assert await wait_woken(moved, 20)
            await hang_up(redis)
            for moved in (one, other):
                assert await wait_woken(moved, 20)
            await until_joined(redis, "run_a", "run_b")
            for topic, moved in (("run_a", one), ("run_b", other)):
                moved.clear()
                await redis.publish(CHANGES + topic, "")
                assert await wait_woken(moved, 20)


async def test_who_comes_while_the_connection_is_lost_is_woken_once_they_are_heard(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        with watch.on("run_a") as one:
            assert await wait_woken(one, 20)
            await hang_up(redis)
            assert await wait_woken(one, 20)
            with watch.on("run_b") as late:
                assert not late.is_set()
                assert await wait_woken(late, 20)
                assert await redis.publish(f"{CHANGES}run_b", "") == 1
                assert await wait_woken(late, 20)


async def test_who_waits_before_anybody_listens_is_woken_when_somebody_does(clean_store_url: str) -> None:
    async with connect(clean_store_url, blocking=True) as blocking:
        watch = Watch(blocking)
        with watch.on("run_a") as moved:
            assert not await wait_woken(moved, 0.01)
            listening = asyncio.create_task(watch.listen())
            assert await wait_woken(moved, 20)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def test_a_connection_that_does_not_answer_is_given_up_and_one_that_does_is_kept(clean_store_url: str) -> None:
    async with connect(clean_store_url, blocking=True) as blocking, connect(clean_store_url) as redis:
        channels = await Channels.open(blocking, lambda _channel, _names: None)
        lasting = asyncio.create_task(channels.run(0.05))

        async def was_asked() -> bool:
            stats = await redis.info("commandstats")
            return int(stats.get("cmdstat_ping", {}).get("calls", 0)) >= 3

        await until(was_asked)
        assert not lasting.done()
        await redis.client_pause(500, all=True)
        with pytest.raises(RedisTimeoutError):
            await asyncio.wait_for(lasting, 20)
        channels.close()


async def test_mark_differs_after_a_change_and_not_before(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        await until_listening(watch, redis)
        first = await watch.mark("t")
        assert first == await watch.mark("t") == watch.find_mark("t")
        await redis.publish(f"{CHANGES}t", "")

        async def differs() -> bool:
            return watch.find_mark("t") not in ("", first)

        await until(differs)


async def test_mark_of_a_lost_connection_is_not_taken_for_current(clean_store_url: str) -> None:
    async with watching(clean_store_url) as (watch, redis):
        await until_listening(watch, redis)
        first = await watch.mark("t")
        await hang_up(redis)

        async def differs() -> bool:
            return await watch.mark("t") not in ("", first)

        await until(differs)


async def test_mark_without_a_connection_is_empty(clean_store_url: str) -> None:
    async with connect(clean_store_url, blocking=True) as blocking:
        assert await Watch(blocking).mark("t") == ""


async def until_listening(watch: Watch, redis: Redis) -> None:
    with watch.on("first"):
        await until_joined(redis, "first")
