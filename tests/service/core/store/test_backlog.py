"""New work for workers is refused while they are behind. Decisions and reads never are."""

from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, Response
from redis.asyncio import Redis

from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.errors import TooManyRequests
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.schedule import Queue, find_wait_s, is_behind
from service.features.operate.metrics import Readings
from tests.builders import approve, make_pending
from tests.service.worlds import POLICY, World
from tests.waits import until
from workers.resume.driving import Drain

CALLS: JsonObject = {"agent": "demo", "calls": [{"tool": "refund", "args": {"order": "A-1", "amount": 5.0}}]}
POLLED: JsonObject = {"mode": "poll", "calls": [{"tool": "refund", "args": {}, "definition": {}}]}
RUN: JsonObject = {"agent": "demo", "input": "Refund A-1"}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, backlog_runs=2)


async def build_backlog(world: World, runs: int = 3) -> list[SuspensionRecord]:
    """Decided runs that no worker takes."""
    return [await approve(world.wiring, await make_pending(world.wiring)) for _ in range(runs)]


async def post(world: World, path: str, body: JsonObject, who: str = "demo") -> Response:
    async with world.client(who) as client:
        return await client.post(path, json=body)


async def drain(world: World, runs: int = 10) -> None:
    """Let a worker take runs; it has no agent of that name, so it postpones them."""
    worker = Drain(world.wiring, "w1")
    for ready in await world.wiring.schedule.take(1, runs):
        await worker._drive(ready)


async def diagnose_queue(world: World) -> dict[str, Any]:
    async with world.client("anna") as client:
        findings = (await client.get("/api/v1/diagnostics")).json()["findings"]
    (found,) = [one for one in findings if one["part"] == "queue"]
    return dict(found)


@pytest.mark.parametrize(
    ("runs", "oldest_ms", "behind"),
    [
        (0, 0, False),
        (64, 60_000, False),  # one worker takes them at once
        (65, 5_000, False),
        (65, 5_001, True),
        (1_000, 5_000, False),
        (1_001, 0, True),
    ],
)
def test_is_behind_by_number_or_age(runs: int, oldest_ms: int, behind: bool) -> None:
    assert is_behind(Queue(runs, oldest_ms), Settings()) == behind


@pytest.mark.parametrize(("oldest_ms", "wait_s"), [(0, 1), (1_500, 2), (14_000, 10)])
def test_find_wait_s_follows_the_age(oldest_ms: int, wait_s: int) -> None:
    assert find_wait_s(Queue(2_000, oldest_ms)) == wait_s


@pytest.mark.parametrize(("path", "body"), [("/api/v1/suspensions", CALLS), ("/api/v1/runs", RUN)])
async def test_new_work_is_refused_until_the_backlog_is_drained(world: World, path: str, body: JsonObject) -> None:
    await build_backlog(world)
    kept = len(await world.wiring.runs.list_runs())
    refused = await post(world, path, body)
    assert (refused.status_code, refused.json()["limit"]) == (429, "backlog")
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert "3 runs wait for a worker" in refused.json()["detail"]
    assert "SAYSO_BACKLOG_RUNS" in refused.json()["detail"]
    assert len(await world.wiring.runs.list_runs()) == kept, "nothing of the request is kept"

    await drain(world)

    async def accepted() -> bool:
        return (await post(world, path, body)).status_code == 201

    await until(accepted)


async def test_decisions_and_reads_pass_over_the_bound(world: World) -> None:
    pending = await make_pending(world.wiring)
    await build_backlog(world)
    assert (await post(world, "/api/v1/suspensions", CALLS)).status_code == 429
    place = f"/api/v1/suspensions/{pending.id}"
    async with world.client("anna") as client:
        assert (await client.get(place)).status_code == 200
        assert (await client.get("/api/v1/runs")).status_code == 200
    decided = await post(
        world, f"{place}/items/i1/decision", {"action": "approve", "digest": pending.items[0].digest}, "anna"
    )
    assert (decided.status_code, decided.json()["status"]) == (200, "decided")
    async with Redis.from_url(world.wiring.settings.store_url) as redis:
        assert await redis.llen(TenantKeys(TENANT).ready) == 4


async def test_worker_continues_its_runs_over_the_bound(world: World) -> None:
    (first, *_) = await build_backlog(world, 4)
    await drain(world, 1)
    assert (await post(world, "/api/v1/suspensions", CALLS)).status_code == 429
    assert (await world.wiring.runs.read(first.run.id)).status is RunStatus.RUNNING
    found = await world.wiring.desk.suspensions.read(first.id)
    assert "no agent named 'demo'" in str(found.record.receipt.error)


async def test_calls_that_clients_execute_pass_over_the_bound(world: World) -> None:
    await build_backlog(world)
    assert (await post(world, "/api/v1/suspensions", CALLS)).status_code == 429
    assert (await post(world, "/api/v1/suspensions", POLLED)).status_code == 201


async def test_refused_request_does_not_count_for_the_pace(world: World) -> None:
    await build_backlog(world)
    await post(world, "/api/v1/suspensions", CALLS)
    async with Redis.from_url(world.wiring.settings.store_url) as redis:
        assert not await redis.exists(TenantKeys(TENANT).pace_of("demo"))


async def test_doctor_and_metrics_say_that_work_is_refused(world: World) -> None:
    await build_backlog(world, 2)
    assert (await diagnose_queue(world))["ok"]
    assert not (await Readings(world.wiring, ()).find()).refusing
    await build_backlog(world, 1)
    found = await diagnose_queue(world)
    assert not found["ok"]
    assert found["message"].startswith("3 runs wait for a worker, the first for ")
    assert "New requests are refused until workers keep up." in found["message"]
    assert "SAYSO_WORKERS" in found["todo"]
    assert (await Readings(world.wiring, ()).find()).refusing


async def test_client_waits_until_workers_keep_up(world: World) -> None:
    await build_backlog(world)
    paused: list[float] = []

    async def pause(pause_s: float) -> None:
        """Let the time pass at once: a worker takes the runs, and the service notices."""
        paused.append(pause_s)
        await drain(world)

        async def noticed() -> bool:
            try:
                await world.wiring.intake._backlog.admit()
            except TooManyRequests:
                return False
            return True

        await until(noticed)

    transport = ASGITransport(app=world.app)
    async with AsyncClient("http://sayso.test", world.tokens["demo"], transport=transport, sleep=pause) as client:
        found = await client.suspend(CALLS, "a")
    assert found.pending
    assert len(paused) == 1
    assert paused[0] >= 1


async def test_impatient_client_raises_and_nothing_runs(world: World) -> None:
    await build_backlog(world)
    transport = ASGITransport(app=world.app)
    async with AsyncClient("http://sayso.test", world.tokens["demo"], patience_s=0, transport=transport) as client:
        with pytest.raises(TooManyRequests, match="SAYSO_BACKLOG_RUNS"):
            await client.suspend(CALLS, "a")
    assert await world.wiring.runs.inbox() == []
