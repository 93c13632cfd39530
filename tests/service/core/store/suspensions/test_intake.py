"""Open items and request rates are limited per key at every endpoint."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, Response
from redis.asyncio import Redis

from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.readings import Wanted
from sayso.core.records.judgements import find_slot
from sayso.errors import TooManyRequests
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.commits import Intake, Opened
from tests.builders import approve, finish, store_of
from tests.service.edge.api.aap.clients import make_instance, make_provisioner
from tests.service.worlds import POLICY, World

CALL: JsonObject = {"tool": "refund", "args": {"order": "A-1", "amount": 5.0}}
CALLS: JsonObject = {"agent": "demo", "calls": [CALL]}


def settings_of(store_url: str, folder: Path, **limits: int) -> Settings:
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    return Settings.model_validate({"redis_url": store_url, "policy": policy, **limits})


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_of(clean_store_url, tmp_path, pending_per_key=3, pending_limit=5)


async def ask(world: World, who: str = "demo", key: str | None = None, body: Any = CALLS) -> Response:
    headers = {"Idempotency-Key": key} if key else {}
    async with world.client(who) as client:
        return await client.post("/api/v1/suspensions", json=body, headers=headers)


def check_refused(answer: Response, setting: str) -> None:
    assert answer.status_code == 429, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["type"] == "/problems/too-many-requests"
    assert setting in answer.json()["detail"]


async def test_one_key_cannot_have_more_items_open_than_its_limit(world: World) -> None:
    answers = await asyncio.gather(*(ask(world, key=f"k{number}") for number in range(20)))
    taken = [one for one in answers if one.status_code == 201]
    assert len(taken) == 3, "asked at the same time, they are counted one by one"
    for one in answers:
        if one not in taken:
            check_refused(one, "SAYSO_PENDING_PER_KEY")
    assert len(await world.wiring.runs.inbox()) == 3


async def test_a_request_with_several_calls_counts_each_of_them(world: World) -> None:
    check_refused(await ask(world, body={**CALLS, "calls": [CALL] * 4}), "SAYSO_PENDING_PER_KEY")
    assert (await ask(world, body={**CALLS, "calls": [CALL] * 3})).status_code == 201
    check_refused(await ask(world), "SAYSO_PENDING_PER_KEY")


async def test_the_same_request_again_is_answered_though_there_is_no_room(world: World) -> None:
    first = await ask(world, key="k")
    assert [(await ask(world)).status_code for _ in range(3)] == [201, 201, 429]
    assert (await ask(world, key="k")).json()["id"] == first.json()["id"]


async def test_what_is_denied_at_once_needs_no_room(world: World) -> None:
    for _ in range(3):
        await ask(world)
    definition = {"parameters": {"type": "object"}}
    denied = {"tool": "refund", "args": {"order": "A-1", "amount": 900.0}, "definition": definition}
    answer = await ask(world, body={**CALLS, "calls": [denied], "mode": "poll"})
    assert (answer.status_code, answer.json()["status"]) == (201, "decided")


async def test_a_decided_run_counts_until_its_worker_has_ended_it(world: World) -> None:
    (first, *_) = [await ask(world) for _ in range(3)]
    found = await world.wiring.desk.suspensions.read(first.json()["id"])
    assert found.record is not None
    record = await approve(world.wiring, found.record)
    check_refused(await ask(world), "SAYSO_PENDING_PER_KEY")
    await finish(world.wiring, record)
    assert (await ask(world)).status_code == 201


async def test_runs_that_no_worker_has_taken_count_too(world: World) -> None:
    async with world.client("demo") as client:
        answers = [await client.post("/api/v1/runs", json={"agent": "demo", "input": "Go"}) for _ in range(4)]
    assert [one.status_code for one in answers] == [201, 201, 201, 429]
    check_refused(answers[3], "SAYSO_PENDING_PER_KEY")


async def test_all_keys_together_have_a_limit(world: World) -> None:
    assert [(await ask(world, "other")).status_code for _ in range(3)] == [201] * 3
    assert [(await ask(world)).status_code for _ in range(2)] == [201] * 2
    check_refused(await ask(world), "SAYSO_PENDING_LIMIT")


async def test_instance_over_its_limit_is_rate_limited(world: World) -> None:
    async with make_instance(world, await make_provisioner(world.wiring)) as made:
        answers = [await made.ask() for _ in range(4)]
    assert [one.status_code for one in answers] == [201, 201, 201, 429]
    assert int(answers[3].headers["retry-after"]) > 0
    error = answers[3].json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit", "rate_limited")
    assert "SAYSO_PENDING_PER_KEY" in error["message"]


async def test_doctor_shows_how_much_is_open_and_when_it_is_too_much(world: World) -> None:
    async def diagnose() -> dict[str, Any]:
        async with world.client("anna") as client:
            findings = (await client.get("/api/v1/diagnostics")).json()["findings"]
        (found,) = [one for one in findings if one["part"] == "limits"]
        return dict(found)

    assert (await diagnose())["ok"]
    await ask(world, "other")
    for _ in range(3):
        await ask(world)
    found = await diagnose()
    assert "4 of 5 items are open; demo has most, 3 of 3" in found["message"]
    assert (found["ok"], "SAYSO_PENDING_PER_KEY" in found["todo"]) == (False, True)


async def test_rate_limited_key_gets_retry_after(clean_store_url: str, tmp_path: Path) -> None:
    settings = settings_of(clean_store_url, tmp_path, asks_per_minute_per_key=4, asks_per_minute=6)
    async with Redis.from_url(clean_store_url) as redis:
        store = store_of(redis)
        intake = Intake(store, settings)
        for _ in range(4):
            await intake.admit("demo")
        with pytest.raises(TooManyRequests, match="demo asked 4 times within a minute") as caught:
            await intake.admit("demo")
        assert 0 < int(str(caught.value.facts["retry_after_s"])) <= 15
        for _ in range(2):
            await intake.admit("other")
        with pytest.raises(TooManyRequests, match="All keys together asked 6 times"):
            await intake.admit("other")
        for key in (TenantKeys(TENANT).pace, TenantKeys(TENANT).pace_of("demo")):
            assert 0 < await redis.pttl(key) <= 60_000, "it is forgotten by itself"
        store.connections.close()


async def test_admitted_request_learns_what_counters_hold(clean_store_url: str, tmp_path: Path) -> None:
    settings = settings_of(clean_store_url, tmp_path, asks_per_minute_per_key=1)
    async with Redis.from_url(clean_store_url) as redis:
        seconds, _ = await redis.time()
        await redis.hset(TenantKeys(TENANT).counter("c"), mapping={str(find_slot(3600, int(seconds) * 1000)): "7"})
        store = store_of(redis)
        intake, wanted = Intake(store, settings), [Wanted("c", 3600), Wanted("c", 3600), Wanted("d", 3600, 95)]
        found = await intake.admit("demo", counters=wanted)
        assert {name: (one.total, one.samples) for name, one in found.items()} == {"c": (7, 0), "d": (0, 0)}
        assert intake.is_calm()
        with pytest.raises(TooManyRequests):
            await intake.admit("demo", counters=wanted)
        assert not intake.is_calm()
        store.connections.close()


async def test_a_pace_from_a_clock_that_went_back_holds_nobody_up(clean_store_url: str, tmp_path: Path) -> None:
    async with Redis.from_url(clean_store_url) as redis:
        await redis.set(TenantKeys(TENANT).pace_of("demo"), "9007199254740991")
        store = store_of(redis)
        intake = Intake(store, settings_of(clean_store_url, tmp_path))
        await intake.admit("demo")
        assert await intake.count_open() == Opened(0, 0, "")
        store.connections.close()


async def test_rate_limited_client_waits_for_retry_after(world: World, settings: Settings) -> None:
    world.wiring.intake.limits = settings.model_copy(update={"asks_per_minute_per_key": 1})
    paused: list[float] = []

    async def pause(pause_s: float) -> None:
        """Let the time pass at once: the pace is forgotten."""
        paused.append(pause_s)
        async with Redis.from_url(settings.store_url) as redis:
            await redis.delete(TenantKeys(TENANT).pace_of("demo"))

    transport = ASGITransport(app=world.app)
    async with AsyncClient(
        "http://sayso.test", world.tokens["demo"], patience_s=90, transport=transport, sleep=pause
    ) as client:
        await client.suspend(CALLS, "a")
        await client.suspend(CALLS, "b")
    assert len(paused) == 1
    assert 50 < paused[0] <= 60


async def test_an_impatient_client_raises_with_the_time_to_wait(world: World) -> None:
    transport = ASGITransport(app=world.app)
    async with AsyncClient("http://sayso.test", world.tokens["demo"], patience_s=0, transport=transport) as client:
        for key in ("a", "b", "c"):
            await client.suspend(CALLS, key)
        with pytest.raises(TooManyRequests, match="SAYSO_PENDING_PER_KEY"):
            await client.suspend(CALLS, "d")


async def test_an_item_asked_again_takes_the_room_of_the_one_it_replaces(world: World) -> None:
    own: Any = {"mode": "poll", "calls": [{**CALL, "definition": {}}]}
    first = await ask(world, key="k", body=own)
    for number in range(2):
        assert (await ask(world, key=f"l{number}")).status_code == 201
    second = await ask(world, key="k", body={**own, "title": "Refund"})
    assert (second.status_code, second.json()["previous_id"]) == (201, first.json()["id"])
    await approve(world.wiring, (await world.wiring.desk.suspensions.read(second.json()["id"])).record)
    assert (await ask(world, key="l2")).status_code == 201
    check_refused(await ask(world, key="k", body={**own, "title": "Refund A-1"}), "SAYSO_PENDING_PER_KEY")
