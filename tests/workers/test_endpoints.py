"""Events reach well-behaved endpoints, whatever others do, and what is refused is kept with its reason."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from redis.asyncio import Redis

from benchmarks.channels.receivers import Behaviour, Program, serving
from sayso.core.clock import now_ms
from sayso.core.records.decisions import ActorKind
from sayso.core.records.events import WebhookEvent
from service.assembly import assemble
from service.core.auth.credentials import Principal
from service.core.outgoing.connections import host_and_port
from service.core.outgoing.http import EVENT_WAITS_S, EVENTS_RETRY_FOR_MS, Posts, event_retry_after_ms
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.announcements import Delivery
from service.core.store.deliveries import Deliveries, Waiting
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.operate.diagnostics import Finding, diagnose
from service.features.webhooks.endpoints import (
    EndpointDraft,
    list_failures,
    register_endpoint,
    send_again,
    verify_endpoint,
)
from service.features.webhooks.store import Endpoints
from tests.builders import approve, make_pending
from tests.receivers import deliver_events
from workers.delivery import Courier
from workers.outbox import FanOut

KEYS = TenantKeys(TENANT)
ROOT = Principal(TENANT, "root", ActorKind.HUMAN, ("reviewer", "admin"))
CREATED = (WebhookEvent.ITEM_CREATED,)


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path, certificate: Path) -> AsyncIterator[Wiring]:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    settings = Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, aap_allow_loopback=True)
    async with assemble(settings) as wired:
        hasty = Posts(loopback=True, attempt_s=1)
        wired.posts = hasty
        yield wired
        await hasty.aclose()


async def register(wiring: Wiring, *programs: Program) -> list[str]:
    """Register and verify an endpoint for each program; return their ids."""
    ids = []
    for program in programs:
        made = await register_endpoint(wiring, ROOT, EndpointDraft(program.url, CREATED))
        await verify_endpoint(wiring, ROOT, made.endpoint.id)
        ids.append(made.endpoint.id)
    return ids


async def find_webhooks(wiring: Wiring) -> list[Finding]:
    return [one async for one in diagnose(wiring) if one.part == "webhooks"]


async def read_only_message(wiring: Wiring, redis: Redis) -> Waiting:
    """Return the one message that waits or has failed."""
    (failed,) = await list_failures(wiring, ROOT)
    found = await wiring.part(Deliveries).read(failed.id)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("301", "The receiver answered 301. Redirects are not followed; register the new URL."),
        ("429", "The receiver answered 429."),
        ("500", "The receiver answered 500."),
        ("reset", "No valid response: the connection broke off, or the response was not HTTP."),
        ("not http", "No valid response: the connection broke off, or the response was not HTTP."),
        ("never", "No valid response: no response within 1 s."),
        ("30 s", "No valid response: no response within 1 s."),
        ("1 byte/s", "No valid response: no response within 1 s."),
    ],
)
async def test_refused_event_is_kept_with_its_reason(
    wiring: Wiring, redis: Redis, certificate: Path, behaviour: str, reason: str
) -> None:
    async with serving(str(certificate), [cast("Behaviour", behaviour), "well"]) as (bad, good):
        await register(wiring, bad, good)
        await make_pending(wiring)
        await deliver_events(wiring)
        assert (len(bad.events), len(good.events)) == (1, 1)
        waiting = await read_only_message(wiring, redis)
        assert (waiting.delivery.reason, waiting.delivery.tries, waiting.delivery.ended) == (reason, 1, None)
        wait_ms = waiting.delivery.not_before_ms - now_ms()
        assert 100_000 < wait_ms <= 120_000 if behaviour == "429" else 3_000 < wait_ms <= 5_000


async def test_410_disables_the_endpoint_until_it_is_verified_again(
    wiring: Wiring, redis: Redis, certificate: Path
) -> None:
    async with serving(str(certificate), ["410"]) as (gone,):
        (endpoint_id,) = await register(wiring, gone)
        await make_pending(wiring)
        await make_pending(wiring)
        await deliver_events(wiring)
        endpoint = await wiring.part(Endpoints).find(endpoint_id)
        assert endpoint is not None
        assert (endpoint.state, endpoint.reason) == (
            "disabled",
            "The receiver answered 410: it wants no more messages.",
        )
        assert len(gone.events) == 1
        failed = await list_failures(wiring, ROOT)
        assert [one.ended for one in failed] == ["given up", "given up"]
        (finding,) = await find_webhooks(wiring)
        assert (finding.ok, finding.message) == (
            False,
            "0 of 1 endpoints are active; 0 failed messages are tried again, 2 were given up. "
            f"{host_and_port(gone.url)}: {endpoint.reason}",
        )
        await make_pending(wiring)
        await deliver_events(wiring)
        assert len(await list_failures(wiring, ROOT)) == 2
        gone.behaviour = "well"
        await verify_endpoint(wiring, ROOT, endpoint_id)
        (finding,) = await find_webhooks(wiring)
        assert (finding.ok, finding.todo.partition(",")[0]) == (False, "Correct the receiver")
        assert finding.message.endswith("The last failure: The endpoint is disabled. " + endpoint.reason)
        assert await send_again(wiring, ROOT, [one.id for one in failed]) == 2
        await deliver_events(wiring)
        assert [one.ok for one in await find_webhooks(wiring)] == [True]
        assert len(gone.events) == 3
        assert await list_failures(wiring, ROOT) == []


async def test_endpoint_that_asks_to_wait_gets_nothing_meanwhile(
    wiring: Wiring, certificate: Path, redis: Redis
) -> None:
    async with serving(str(certificate), ["429"]) as (busy,):
        await register(wiring, busy)
        courier = Courier(wiring)
        for _ in range(3):
            await make_pending(wiring)
            await deliver_events(wiring, courier)
        assert len(busy.events) == 1


async def test_failing_endpoint_is_probed_by_one_attempt_at_a_time(
    wiring: Wiring, certificate: Path, redis: Redis
) -> None:
    async with serving(str(certificate), ["500", "well"]) as (bad, good):
        await register(wiring, bad, good)
        for _ in range(12):
            await make_pending(wiring)
        courier = await deliver_events(wiring)
        assert len(good.events) == 12
        assert (len(bad.events), bad.most_at_once) == (5, 1)
        (circuit,) = courier.breakers.list_open()[""]
        assert circuit.destination == (await wiring.part(Endpoints).list_all())[0].id


async def test_quick_endpoint_gets_several_attempts_at_once(wiring: Wiring, certificate: Path) -> None:
    async with serving(str(certificate), ["well"]) as (good,):
        good.answers_after_s = 0.1  # so that requests overlap
        await register(wiring, good)
        for _ in range(40):
            await make_pending(wiring)
        await deliver_events(wiring)
        assert len({one.headers["webhook-id"] for one in good.events}) == len(good.events) == 40
        assert 8 < good.most_at_once <= 64


async def test_couriers_of_two_processes_send_each_event_once(wiring: Wiring, certificate: Path) -> None:
    async with serving(str(certificate), ["well"]) as (good,):
        await register(wiring, good)
        for _ in range(20):
            await make_pending(wiring)
        await FanOut(wiring).announce_due()
        couriers = [Courier(wiring) for _ in range(3)]
        for one in couriers:
            await one.deliver_due()
        for one in couriers:
            await one.finish()
        assert sorted(one.headers["webhook-id"] for one in good.events) == sorted(
            {one.headers["webhook-id"] for one in good.events}
        )


async def test_event_is_given_up_after_ten_attempts(wiring: Wiring, redis: Redis, certificate: Path) -> None:
    async with serving(str(certificate), ["500"]) as (bad,):
        await register(wiring, bad)
        await make_pending(wiring)
        await deliver_events(wiring)
        for tries in range(2, 11):
            waiting = await read_only_message(wiring, redis)
            await _bring_forward(redis, waiting)
            await deliver_events(wiring)
            assert (await read_only_message(wiring, redis)).delivery.tries == tries
        ended = (await read_only_message(wiring, redis)).delivery
        assert (ended.ended, ended.reason) == ("given up", "The receiver answered 500.")
        assert len({(one.headers["webhook-id"], one.raw) for one in bad.events}) == 1
        assert len(bad.events) == 10


async def _bring_forward(redis: Redis, waiting: Waiting) -> None:
    message = waiting.delivery.model_copy(update={"not_before_ms": 0})
    packed = f"{waiting.version}|{message.model_dump_json()}"
    await redis.set(KEYS.delivery(message.id), packed)
    await redis.zadd(KEYS.lane(message.endpoint_id), {message.id: 0})
    await redis.zadd(KEYS.deliveries, {f"lane:{message.endpoint_id}": 0})


def test_waits_of_events_are_jittered_over_three_days() -> None:
    for number in range(50):
        waits = [event_retry_after_ms(f"evt_{number}", tries) for tries in range(1, 10)]
        assert all(
            wait is not None and 900 * s < wait <= 1000 * s for wait, s in zip(waits, EVENT_WAITS_S, strict=True)
        )
        assert 2.6 * 86_400_000 < sum(one or 0 for one in waits) < EVENTS_RETRY_FOR_MS
        assert event_retry_after_ms(f"evt_{number}", 10) is None
    assert len({event_retry_after_ms(f"evt_{number}", 1) for number in range(50)}) > 40


async def test_message_of_an_earlier_version_moves_into_its_lane(
    wiring: Wiring, redis: Redis, certificate: Path
) -> None:
    async with serving(str(certificate), ["well"]) as (good,):
        (endpoint_id,) = await register(wiring, good)
        old = {"id": "evt_old", "endpoint_id": endpoint_id, "body": '{"type":"x"}', "until_ms": now_ms() + 60_000}
        await redis.set(KEYS.delivery("evt_old"), f"1|{json.dumps(old)}")
        await redis.zadd(KEYS.deliveries, {"evt_old": 0})
        await deliver_events(wiring)
        await deliver_events(wiring)
        assert [one.headers["webhook-id"] for one in good.events] == ["evt_old"]


async def test_message_of_a_later_version_is_kept_and_delays_no_other(
    wiring: Wiring, redis: Redis, certificate: Path
) -> None:
    async with serving(str(certificate), ["well"]) as (good,):
        (endpoint_id,) = await register(wiring, good)
        fields = {"id": "evt_new", "endpoint_id": endpoint_id, "body": "{}", "until_ms": now_ms() + 60_000, "mood": "x"}
        stored = f"1|{json.dumps(fields)}"
        await redis.set(KEYS.delivery("evt_new"), stored)
        await redis.zadd(KEYS.lane(endpoint_id), {"evt_new": 0})
        await redis.zadd(KEYS.deliveries, {f"lane:{endpoint_id}": 0})
        await make_pending(wiring)
        await deliver_events(wiring)
        assert len(good.events) == 1
        assert await redis.get(KEYS.delivery("evt_new")) == stored.encode()
        later_ms = await redis.zscore(KEYS.lane(endpoint_id), "evt_new")
        assert later_ms is not None
        assert later_ms > now_ms()


async def test_events_of_one_millisecond_arrive_in_order_one_at_a_time(wiring: Wiring, certificate: Path) -> None:
    async with serving(str(certificate), ["well"]) as (program,):
        (endpoint_id,) = await register(wiring, program)
        at_ms = await wiring.schedule.now_ms() - 1
        created, decided = (
            Delivery(
                id=id_,
                endpoint_id=endpoint_id,
                body=json.dumps({"type": type_}),
                until_ms=at_ms + 60_000,
                type=type_,
                subject="sus_1",
                created_at_ms=at_ms,
            )
            for id_, type_ in (("evt_2", WebhookEvent.ITEM_CREATED), ("evt_1", WebhookEvent.ITEM_DECIDED))
        )
        await wiring.part(Deliveries).add([decided, created], at_ms)
        await deliver_events(wiring)
        assert [came.body["type"] for came in program.events] == ["item.created", "item.decided"]
        assert program.most_at_once == 1


async def test_events_of_one_item_arrive_in_order_while_many_are_under_way(wiring: Wiring, certificate: Path) -> None:
    async with serving(str(certificate), ["well"]) as (program,):
        program.answers_after_s = 0.05
        events = (WebhookEvent.ITEM_CREATED, WebhookEvent.ITEM_DECIDED)
        made = await register_endpoint(wiring, ROOT, EndpointDraft(program.url, events))
        await verify_endpoint(wiring, ROOT, made.endpoint.id)
        for _ in range(30):
            await approve(wiring, await make_pending(wiring))
        await deliver_events(wiring)
        orders: dict[str, list[str]] = defaultdict(list)
        for came in program.events:
            orders[came.body["data"]["item"]["suspension_id"]].append(came.body["type"])
        assert [*orders.values()] == [["item.created", "item.decided"]] * 30
        assert program.most_at_once > 8
