"""Caches are refreshed while in use; what is too old is never returned, refreshed or not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from sayso.errors import NotAuthenticated, Unavailable
from service.core.auth.credentials import CACHED_MS
from service.core.auth.reviewers import hash_token
from service.core.cache import KEPT_MS, SHARED_MS, USED_WITHIN_MS, Cache, Refresher
from service.core.settings import Settings
from service.core.store.connection.watch import Watch
from service.core.store.keys import SESSIONS
from service.core.store.tenants import Connections
from service.core.wiring import Process, Wiring
from service.features.registry import HOOKS
from tests.builders import approve, make_agent, make_pending, make_person, person


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.at_ms = 1_000.0

    def __call__(self) -> float:
        return self.at_ms


class Source:
    """A value in the store, and how often it was read."""

    def __init__(self) -> None:
        self.reads = 0
        self.fault: Exception | None = None

    async def read(self) -> int:
        self.reads += 1
        if self.fault is not None:
            raise self.fault
        return self.reads


def slow_memory(refresher: Refresher) -> tuple[Cache[str], list[asyncio.Future[str]]]:
    """Return a cache, and the futures on which its first reads wait."""
    answers: list[asyncio.Future[str]] = [asyncio.get_running_loop().create_future() for _ in range(2)]
    waiting = iter(answers)

    async def read() -> str:
        return await next(waiting)

    return Cache(read, refresher), answers


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def refresher(clock: Clock) -> AsyncIterator[Refresher]:
    made = Refresher(clock)
    yield made
    made.stop()


async def test_refreshed_value_is_found_without_a_read(clock: Clock, refresher: Refresher) -> None:
    source = Source()
    memory = Cache(source.read, refresher)
    await memory.find()
    for _ in range(10):
        clock.at_ms += KEPT_MS - 1
        await refresher.refresh()
    assert (await memory.find(), source.reads) == (11, 11)


async def test_value_is_read_again_when_nothing_refreshes_it(clock: Clock, refresher: Refresher) -> None:
    source = Source()
    memory = Cache(source.read, refresher)
    assert await memory.find() == 1
    clock.at_ms += KEPT_MS - 1
    assert await memory.find() == 1
    clock.at_ms += 1
    assert await memory.find() == 2


async def test_unused_cache_is_refreshed_no_more(clock: Clock, refresher: Refresher) -> None:
    source = Source()
    memory = Cache(source.read, refresher)
    await memory.find()
    clock.at_ms += USED_WITHIN_MS - 1
    await refresher.refresh()
    assert source.reads == 2
    clock.at_ms += 1
    await refresher.refresh()
    assert source.reads == 2
    await memory.find()
    await refresher.refresh()
    assert source.reads == 3  # used again, it is refreshed again


async def test_failed_refresh_leaves_the_age_of_the_value(clock: Clock, refresher: Refresher) -> None:
    sources = Source(), Source()
    first, second = (Cache(source.read, refresher) for source in sources)
    assert (await first.find(), await second.find()) == (1, 1)
    for fault in (Unavailable(), ValueError("unreadable")):
        sources[0].fault = fault
        clock.at_ms += KEPT_MS - 1
        await refresher.refresh()
    assert sources[1].reads == 3  # the other's fault does not keep it from being refreshed
    with pytest.raises(ValueError, match="unreadable"):
        await first.find()


async def test_all_who_ask_at_once_share_a_read_unless_it_takes_long(clock: Clock, refresher: Refresher) -> None:
    memory, answers = slow_memory(refresher)
    early = [asyncio.create_task(memory.find()) for _ in range(3)]
    await asyncio.sleep(0)  # all have asked
    early[0].cancel()  # its request is gone, the others still wait
    clock.at_ms += SHARED_MS
    late = asyncio.create_task(memory.find())
    await asyncio.sleep(0)  # it has asked
    answers[0].set_result("early")
    assert await asyncio.gather(*early[1:]) == ["early"] * 2
    answers[1].set_result("late")
    assert await late == "late"


async def test_value_read_before_a_fresh_one_does_not_replace_it(clock: Clock, refresher: Refresher) -> None:
    memory, answers = slow_memory(refresher)
    early = asyncio.create_task(memory.find())
    await asyncio.sleep(0)
    clock.at_ms += 1
    late = asyncio.create_task(memory.find(fresh=True))
    await asyncio.sleep(0)
    answers[1].set_result("after the change")
    await late
    answers[0].set_result("before it")
    await early
    assert await memory.find() == "after the change"


@asynccontextmanager
async def opened(url: str, refresher: Refresher) -> AsyncIterator[tuple[Wiring, Redis]]:
    async with Redis.from_url(url) as redis:
        connections = Connections(redis, refresher)
        process = Process(Settings(redis_url=url), connections, Watch(redis), HOOKS)
        try:
            yield process.wiring, redis
        finally:
            connections.close()
            await process.posts.aclose()


async def test_revoked_key_fails_within_a_second_unrefreshed(
    clean_store_url: str, clock: Clock, refresher: Refresher
) -> None:
    async with opened(clean_store_url, refresher) as (wiring, _):
        token = await make_agent(wiring, "demo")
        await wiring.credentials.identify(token)
        refresher.stop()
        (key,) = await wiring.api_keys.list_all()
        await wiring.api_keys.revoke(key.id)
        clock.at_ms += CACHED_MS
        with pytest.raises(NotAuthenticated):
            await wiring.credentials.identify(token)


async def test_freeze_applies_within_a_second_unrefreshed(
    clean_store_url: str, clock: Clock, refresher: Refresher
) -> None:
    async with opened(clean_store_url, refresher) as (wiring, _), opened(clean_store_url, Refresher()) as (other, _):
        assert await wiring.freezes.in_force() == []
        refresher.stop()
        await other.freezes.freeze("all", "a test", person("root"))
        clock.at_ms += KEPT_MS
        assert [one.scope for one in await wiring.freezes.in_force()] == ["all"]


async def test_refresh_forgets_revoked_credentials_and_updates_the_others(
    clean_store_url: str, clock: Clock, refresher: Refresher
) -> None:
    async with opened(clean_store_url, refresher) as (wiring, _):
        agent, anna = await make_agent(wiring, "demo"), await make_person(wiring, "anna")
        await wiring.credentials.identify(agent)
        assert (await wiring.credentials.identify(anna)).groups == ()
        (key,) = await wiring.api_keys.list_all()
        await wiring.api_keys.revoke(key.id)
        await wiring.groups.create("ops", ("anna",), (), "root")
        clock.at_ms += CACHED_MS - 1
        await refresher.refresh()
        with pytest.raises(NotAuthenticated):
            await wiring.credentials.identify(agent)
        assert (await wiring.credentials.identify(anna)).groups == ("ops",)


async def test_refresh_restarts_the_idle_time_of_used_sessions_only(
    clean_store_url: str, clock: Clock, refresher: Refresher
) -> None:
    async with opened(clean_store_url, refresher) as (wiring, redis):
        token = await make_person(wiring, "anna")
        session, most_ms = SESSIONS + hash_token(token), wiring.settings.session_idle_s * 1000
        await wiring.credentials.identify(token)

        async def refresh() -> int:
            await redis.pexpire(session, 5_000)
            clock.at_ms += CACHED_MS - 1
            await refresher.refresh()
            return int(await redis.pttl(session))

        assert await refresh() <= 5_000
        await wiring.credentials.identify(token, in_use=False)
        assert await refresh() <= 5_000
        await wiring.credentials.identify(token)
        assert 5_000 < await refresh() <= most_ms
        assert await refresh() <= 5_000


async def test_session_signed_out_during_its_refresh_stays_out(
    clean_store_url: str, clock: Clock, refresher: Refresher
) -> None:
    async with opened(clean_store_url, refresher) as (wiring, _):
        token = await make_person(wiring, "anna")
        await wiring.credentials.identify(token)
        clock.at_ms += CACHED_MS - 1
        refreshing = asyncio.create_task(refresher.refresh())
        await asyncio.sleep(0)
        await wiring.credentials.sign_out(token)
        await refreshing
        with pytest.raises(NotAuthenticated):
            await wiring.credentials.identify(token)


async def test_lone_decision_sends_the_commands_of_a_hot_one(
    clean_store_url: str, clock: Clock, refresher: Refresher
) -> None:
    async with opened(clean_store_url, refresher) as (wiring, redis):
        token = await make_person(wiring, "anna")

        async def decide() -> dict[str, int]:
            record = await make_pending(wiring)
            await redis.config_resetstat()
            by = await wiring.credentials.identify(token)
            await approve(wiring, record, by.name)
            stats = await redis.info("commandstats")
            return {name: one["calls"] for name, one in stats.items() if name != "cmdstat_config|resetstat"}

        cold, hot = await decide(), await decide()
        assert cold != hot
        clock.at_ms += 10_000
        await refresher.refresh()
        assert await decide() == hot
        clock.at_ms += 10_000
        assert "cmdstat_hgetall" in await decide()  # unrefreshed, it reads
