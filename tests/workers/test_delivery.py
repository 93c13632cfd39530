"""A message about a decision reaches its receiver signed and once, or is not sent at all."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from httpx import ASGITransport, AsyncClient
from redis.asyncio import Redis
from starlette.responses import Response

from sayso.core.clock import now_ms
from sayso.core.records.freezes import ClockReading
from sayso.core.signing import SignedMessage, verify_message
from service.app import create_app
from service.core.outgoing.http import FIRST_RETRY_MS, LONGEST_RETRY_MS, Answer, read_retry_after_ms, retry_after_ms
from service.core.settings import Settings
from service.core.store.deliveries import Deliveries
from service.core.store.instances import Instances
from service.core.store.keys import TenantKeys
from tests.builders import approve, make_person, person
from tests.receivers import SECRET, Receiver
from tests.service.edge.api.aap.clients import InstanceClient as Made
from tests.service.edge.api.aap.clients import connected, find, make_instance, make_late, make_provisioner
from tests.service.worlds import World
from workers.clock.running import JumpDetector
from workers.clock.ticks import wake_unfrozen
from workers.delivery import Courier

KEYS = TenantKeys("default")


@pytest.fixture
async def world(clean_store_url: str, tmp_path: Path) -> AsyncIterator[World]:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: [{id: a, tool: look_up, action: allow}]\n")
    app = create_app(Settings(redis_url=clean_store_url, policy=policy, aap_allow_loopback=True))
    async with app.router.lifespan_context(app):
        yield World(app, app.state.process.wiring)


@pytest.fixture
async def subscriber(world: World, receiver: Receiver) -> AsyncIterator[Made]:
    """An instance that receives decisions."""
    await make_person(world.wiring, "anna")
    provisioner = await make_provisioner(world.wiring)
    world.tokens["platform"] = provisioner
    async with make_instance(world, provisioner, delivery=receiver.delivery()) as made:
        yield made


async def deliver(world: World, courier: Courier | None = None) -> None:
    """Attempt each due delivery once."""
    courier = courier or Courier(world.wiring)
    await courier.deliver_due()
    await courier.finish()


async def read_scores(redis: Redis, key: str) -> list[tuple[bytes, float]]:
    return cast("list[tuple[bytes, float]]", await redis.zrange(key, 0, -1, withscores=True))


async def read_deliveries(redis: Redis) -> list[tuple[bytes, float]]:
    """Return all messages of all lanes and all deletions, with their due times."""
    listed = await read_scores(redis, KEYS.deliveries)
    lanes = [name.decode().partition(":")[2] for name, _ in listed if name.startswith(b"lane:")]
    messages = [one for lane in lanes for one in await read_scores(redis, KEYS.lane(lane))]
    return [one for one in listed if not one[0].startswith(b"lane:")] + messages


async def change_waiting(redis: Redis, **members: Any) -> dict[str, Any]:
    """Change the one message that waits; return it was."""
    ((name, _),) = await read_deliveries(redis)
    key = KEYS.delivery(name.decode())
    raw = await redis.get(key)
    assert isinstance(raw, bytes)
    version, _, body = raw.decode().partition("|")
    waiting: dict[str, Any] = json.loads(body)
    await redis.set(key, f"{version}|{json.dumps(waiting | members)}")
    return waiting


async def bring_forward(redis: Redis) -> list[float]:
    """Make the one waiting message due now; return how long it would have waited."""
    ((name, score),) = await read_deliveries(redis)
    await change_waiting(redis, not_before_ms=0)
    await move(redis, name.decode(), 0)
    return [score - now_ms()]


async def move(redis: Redis, name: str, at_ms: int) -> None:
    """Make the waiting message due at another time."""
    (lane,) = [one for one, _ in await read_scores(redis, KEYS.deliveries) if one.startswith(b"lane:")]
    await redis.zadd(KEYS.lane(lane.decode().removeprefix("lane:")), {name: at_ms})
    await redis.zadd(KEYS.deliveries, {lane: at_ms})


async def decided(world: World, made: Made, **members: Any) -> str:
    """A request that a reviewer has approved."""
    request_id = await made.waiting(**members)
    await approve(world.wiring, await find(world.wiring, request_id))
    return request_id


async def test_decision_is_sent_once_signed_without_its_content(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    request_id = await subscriber.waiting(args={"amount": 7})
    assert await redis.zcard(KEYS.deliveries) == 0
    await approve(world.wiring, await find(world.wiring, request_id))
    await deliver(world)
    await deliver(world)

    (event,) = receiver.events()
    headers, body = receiver.came[-1]
    shown = await subscriber.show(request_id)
    assert event == {
        "id": headers["webhook-id"],
        "type": "request.resolved",
        "instance_id": subscriber.id,
        "request_id": request_id,
        "created_at": shown["decision"]["decided_at"],
    }
    message = SignedMessage(event["id"], headers["webhook-timestamp"], headers["webhook-signature"], body)
    assert verify_message([SECRET], message, now_ms()) == event["id"]
    assert headers["content-type"] == "application/json"
    assert await redis.zcard(KEYS.deliveries) == 0


@pytest.mark.parametrize("end", ["deny at once", "cancel", "expire", "allow at once"])
async def test_every_end_of_a_request_is_sent(world: World, subscriber: Made, receiver: Receiver, end: str) -> None:
    if end == "allow at once":
        assert (await subscriber.ask("look_up")).json()["status"] == "approved"
    else:
        request_id = await subscriber.waiting()
        if end == "cancel":
            assert (await subscriber.client.delete(f"/requests/{request_id}")).status_code == 200
        else:
            await make_late(world.wiring, request_id)
            await subscriber.show(request_id)
    await deliver(world)
    assert len(receiver.events()) == 1


async def test_decision_before_a_crash_is_sent_by_the_next_process(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    request_id = await decided(world, subscriber)
    (event_id,) = await world.wiring.part(Deliveries).lane(subscriber.id).due(now_ms() + 1000)
    waiting = await world.wiring.part(Deliveries).read(event_id)
    assert waiting is not None
    claimed = await world.wiring.part(Deliveries).claim(waiting, now_ms())
    assert claimed is not None  # and here its process dies

    await deliver(world)
    assert receiver.events() == []
    await bring_forward(redis)
    await deliver(world)
    assert [event["request_id"] for event in receiver.events()] == [request_id]


async def test_refused_message_is_retried_with_the_same_id_and_body(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    await decided(world, subscriber)
    receiver.say = lambda _: Response(status_code=500)
    waits: list[float] = []
    for _ in range(4):
        await deliver(world)
        waits += await bring_forward(redis)
    receiver.say = lambda _: Response(status_code=202)
    await deliver(world)

    assert len(receiver.events()) == 5
    assert len({(headers["webhook-id"], body) for headers, body in receiver.came[1:]}) == 1
    assert all(FIRST_RETRY_MS * 2**turn * 0.4 < wait <= FIRST_RETRY_MS * 2**turn for turn, wait in enumerate(waits))
    assert await redis.zcard(KEYS.deliveries) == 0


async def test_retry_after_of_the_receiver_is_respected(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    await decided(world, subscriber)
    receiver.say = lambda _: Response(status_code=503, headers={"Retry-After": "120"})
    await deliver(world)
    (wait,) = await bring_forward(redis)
    assert 100_000 < wait <= 120_000


async def test_redirects_are_not_followed(world: World, subscriber: Made, receiver: Receiver, redis: Redis) -> None:
    await decided(world, subscriber)
    receiver.say = lambda _: Response(status_code=307, headers={"Location": receiver.url + "/elsewhere"})
    await deliver(world)
    assert len(receiver.events()) == 1
    assert await redis.zcard(KEYS.deliveries) == 1


async def test_concurrent_couriers_make_one_attempt(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    for _ in range(5):
        await decided(world, subscriber)
    couriers = [Courier(world.wiring) for _ in range(4)]
    await asyncio.gather(*(deliver(world, courier) for courier in couriers))
    while await redis.zcard(KEYS.deliveries):
        await bring_forward(redis)
        await deliver(world)
    ids = [event["id"] for event in receiver.events()]
    assert len(ids) == len(set(ids)) == 5


async def test_delivery_is_given_up_after_seven_days(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    await decided(world, subscriber)
    before = await change_waiting(redis, until_ms=now_ms() - 1)
    assert before["until_ms"] - now_ms() > 7 * 86_400_000 - 60_000
    await deliver(world)
    assert receiver.events() == []
    assert await redis.zcard(KEYS.deliveries) == 0
    ended = await world.wiring.part(Deliveries).read(before["id"])
    assert ended is not None
    assert ended.delivery.ended == "given up"
    assert 86_400_000 < await redis.pttl(KEYS.delivery(before["id"])) <= 30 * 86_400_000


@pytest.mark.parametrize(("deadlines", "comes"), [(None, 1), ("move", 1), ("pass", 0)])
async def test_clock_jump_does_not_shorten_the_seven_days(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis, deadlines: Any, comes: int
) -> None:
    await decided(world, subscriber)
    at_ms, day_ms = now_ms(), 86_400_000
    await change_waiting(redis, until_ms=at_ms - day_ms)
    freeze = await world.wiring.freezes.doubt_time(at_ms - 3 * day_ms, at_ms)
    if deadlines is not None:
        await world.wiring.freezes.unfreeze(freeze.id, person("root"), deadlines)
    receiver.say = lambda message: Response(status_code=500)
    courier = Courier(world.wiring)
    await deliver(world, courier)
    await deliver(world, courier)
    assert len(receiver.events()) == comes


async def test_retry_follows_a_clock_that_went_back(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    receiver.say = lambda message: Response(status_code=500)
    await decided(world, subscriber)
    day_ms, ahead = 86_400_000, ClockReading(at_ms=now_ms(), uptime_ms=0, boot="one", wall_ms=0)
    waiting = await change_waiting(redis, not_before_ms=ahead.at_ms + day_ms + 2000)
    await move(redis, waiting["id"], ahead.at_ms + day_ms + 2000)
    await redis.zadd(KEYS.deliveries, {"gone:long": ahead.at_ms + day_ms})
    beats = JumpDetector(world.wiring)
    await beats.note(ahead.model_copy(update={"at_ms": ahead.at_ms + day_ms}))
    await beats.note(ahead)
    due = await read_deliveries(redis)
    assert due == [(b"gone:long", ahead.at_ms), (waiting["id"].encode(), ahead.at_ms + 2000)]
    read = await world.wiring.part(Deliveries).read(waiting["id"])
    assert read is not None
    assert (read.delivery.not_before_ms, read.delivery.ended) == (ahead.at_ms + 2000, None)


async def test_instance_without_delivery_gets_no_message(
    world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    await decided(world, subscriber)
    async with connected(world, world.tokens["platform"]) as client:
        changed = await client.patch(
            f"/instances/{subscriber.id}", json={"delivery": None}, headers={"Idempotency-Key": "stop"}
        )
        assert changed.json() == {"id": subscriber.id, "name": changed.json()["name"]}
    await deliver(world)
    await decided(world, subscriber)
    assert await redis.zcard(KEYS.deliveries) == 0
    assert receiver.events() == []


async def test_interrupted_deletion_is_completed(world: World, subscriber: Made, redis: Redis) -> None:
    request_id = await subscriber.waiting()
    instance = await world.wiring.part(Instances).read(subscriber.id)
    assert instance is not None
    assert await world.wiring.part(Instances).delete(instance, now_ms())  # and here its process dies
    await deliver(world)
    assert (await find(world.wiring, request_id)).status == "cancelled"
    await deliver(world)
    assert await redis.zcard(KEYS.deliveries) == 0


async def test_held_request_of_a_deleted_instance_is_withdrawn_later(
    world: World, subscriber: Made, redis: Redis
) -> None:
    request_id, at_ms = await subscriber.waiting(), now_ms()
    await make_late(world.wiring, request_id)
    freeze = await world.wiring.freezes.doubt_time(at_ms - 3_600_000, at_ms + 1000)
    async with connected(world, world.tokens["platform"]) as client:
        assert (await client.delete(f"/instances/{subscriber.id}")).status_code == 204
    ((name, again_at_ms),) = await read_deliveries(redis)
    assert again_at_ms > at_ms, "nobody looks all the time"
    await world.wiring.freezes.unfreeze(freeze.id, person("root"))
    assert await wake_unfrozen(world.wiring) == 1
    assert (await find(world.wiring, request_id)).status == "pending"
    await redis.zadd(KEYS.deliveries, {name: 0})
    await deliver(world)
    assert (await find(world.wiring, request_id)).status == "cancelled"


async def test_local_address_gets_no_message_unless_allowed(
    clean_store_url: str, world: World, subscriber: Made, receiver: Receiver, redis: Redis
) -> None:
    await decided(world, subscriber)
    strict = create_app(Settings(redis_url=clean_store_url, policy=world.wiring.settings.policy))
    async with strict.router.lifespan_context(strict):
        courier = Courier(strict.state.process.wiring)
        await courier.deliver_due()
        await courier.finish()
        async with AsyncClient(transport=ASGITransport(app=strict), base_url="http://sayso.test") as client:
            headers = {"Authorization": f"Bearer {world.tokens['platform']}", "Idempotency-Key": "other"}
            body = {"delivery": receiver.delivery()}
            refused = await client.post("/api/aap/v1/instances", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_webhook_url")
    assert receiver.events() == []
    assert await redis.zcard(KEYS.deliveries) == 1


def test_retry_after_ms_grows_to_an_hour_with_jitter() -> None:
    waits = [retry_after_ms("e", tries) for tries in range(1, 40)]
    for tries, wait in enumerate(waits, start=1):
        longest = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1))
        assert longest / 2 <= wait <= longest
    assert len({retry_after_ms(f"e{number}", 5) for number in range(50)}) > 40


def test_read_retry_after_ms_takes_seconds_or_a_date() -> None:
    at_ms = int(datetime(2026, 11, 21, 12, 0, tzinfo=UTC).timestamp() * 1000)
    date = "Sat, 21 Nov 2026 12:01:00 GMT"
    said = {"30": 30_000, date: 60_000, "soon": 0, "": 0, "-5": 0, "99999999999999": 999_999_999_000}
    for text, wait in said.items():
        assert read_retry_after_ms(Answer(429, retry_after=text), at_ms) == wait
    assert read_retry_after_ms(Answer(500, retry_after="30"), at_ms) == 0
