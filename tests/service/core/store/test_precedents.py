"""Commits of approvals keep what later items are compared with."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from service.assembly import assemble
from service.core.settings import Settings
from service.core.store.connection.connecting import connect
from service.core.store.precedents import MOST_COMPARED, MOST_NEAR, MOST_PRECEDENTS, Kind, Precedents
from service.core.wiring import Wiring
from tests.builders import store_of
from tests.service.edge.web.stories import asked, decide, make_ask

KIND = Kind("demo", "support", "refund_payment")


@pytest.fixture
async def wiring(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wiring:
        yield wiring


@pytest.fixture
async def redis(settings: Settings) -> AsyncIterator[Redis]:
    redis = connect(settings.store_url)
    yield redis
    await redis.aclose()


async def amounts(redis: Redis, kind: Kind = KIND) -> list[str]:
    found = await Precedents(store_of(redis)).find_all(kind)
    return [str(number) for one in found for number in one.quantities.values()]


async def ask(wiring: Wiring, amount: int, **fields: Any) -> SuspensionRecord:
    args: JsonObject = {"order_id": "A-1", "amount": amount, "currency": "EUR"}
    return await asked(wiring, make_ask(args=args, **fields))


async def test_approvals_by_people_are_kept_as_they_run(wiring: Wiring, redis: Redis) -> None:
    await decide(wiring, await ask(wiring, 100), "approve")
    await decide(wiring, await ask(wiring, 200), "deny")
    await decide(wiring, await ask(wiring, 300), "approve", args={"order_id": "A-1", "amount": 30, "currency": "EUR"})
    await ask(wiring, 400, terms={"timeout_s": 0, "fallback": {"action": "approve"}, "unattended_approval": True})
    assert await amounts(redis) == ["100", "30"]
    assert await amounts(redis, Kind("other", "support", "refund_payment")) == []


async def test_secrets_are_not_kept(wiring: Wiring, redis: Redis) -> None:
    await decide(wiring, await ask(wiring, 100, terms={"secrets": ["amount"]}), "approve")
    assert await amounts(redis) == []


async def test_precedents_are_bounded_and_expire(wiring: Wiring, redis: Redis) -> None:
    key = store_of(redis).keys.precedents(*KIND)
    await redis.rpush(key, *['[{"amount EUR":"1"},[]]'] * MOST_PRECEDENTS)
    await decide(wiring, await ask(wiring, 100), "approve")
    found = await amounts(redis)
    assert (len(found), found[-1]) == (MOST_PRECEDENTS, "100")
    assert 0 < await redis.pttl(key) <= 180 * 86_400_000


async def test_last_approval_is_the_reviewers_own(wiring: Wiring, redis: Redis) -> None:
    quorum = {"quorum": {"approve": 2}}
    first = await ask(wiring, 100, terms=quorum)
    await decide(wiring, first, "approve", name="ben")
    second = await ask(wiring, 200)
    await decide(wiring, second, "approve", name="anna")
    precedents = Precedents(store_of(redis))
    assert await precedents.find_last("ben", KIND) == (first.id, "i1")
    assert await precedents.find_last("anna", KIND) == (second.id, "i1")
    assert await precedents.find_last("carla", KIND) is None
    await decide(wiring, await ask(wiring, 300), "deny", name="anna")
    assert await precedents.find_last("anna", KIND) == (second.id, "i1")


async def test_find_earlier_reads_each_kind_of_open_call_once(wiring: Wiring) -> None:
    await decide(wiring, await ask(wiring, 100), "approve")
    records = [await ask(wiring, 5), await ask(wiring, 6)]
    earlier = await wiring.part(Precedents).find_earlier(records)
    assert {kind: len(found) for kind, found in earlier.items()} == {KIND: 1}
    await decide(wiring, records[0], "approve")
    assert len((await wiring.part(Precedents).find_earlier(records))[KIND]) == 1, "cached"


async def test_denials_of_near_calls_are_bounded_and_the_latest_found(wiring: Wiring, redis: Redis) -> None:
    key = store_of(redis).keys.near_denials("demo", "refund_payment")
    old = [await ask(wiring, amount) for amount in (1, 2)]
    for record in old:
        await decide(wiring, record, "deny")
    await redis.lpush(key, *['["sus_0","i1","run_0","support",null]'] * MOST_NEAR)
    latest = [await ask(wiring, amount) for amount in range(3, 3 + MOST_COMPARED)]
    for record in latest:
        await decide(wiring, record, "deny")
    assert await redis.llen(key) == MOST_NEAR
    assert 0 < await redis.pttl(key) <= 180 * 86_400_000
    near = await ask(wiring, 9)
    places = await wiring.part(Precedents).find_near(near, near.items[0])
    assert places == [(record.id, "i1") for record in reversed(latest)]
