"""Requests and their keys are kept as long as the protocol promises, even under shorter retention settings."""

from copy import copy
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.core.clock import DAY_MS
from service.core.settings import Settings
from service.core.store.keys import TenantKeys
from tests.service.edge.api.aap.clients import InstanceClient, find
from tests.service.worlds import POLICY, World
from workers.retention import erase_old, forget_old


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, keep_runs_days=1, keep_trail_days=1)


async def test_request_and_key_are_kept_for_eight_days_after_the_deadline(
    world: World, bot: InstanceClient, settings: Settings
) -> None:
    created = await bot.ask(key="one", timeout="48h")
    request_id = created.json()["id"]
    assert (await bot.client.delete(f"/requests/{request_id}")).status_code == 200
    now_ms = await world.wiring.schedule.now_ms()

    assert await forget_old(world.wiring, now_ms + 9 * DAY_MS) == (0, 0)
    assert (await bot.ask(key="one", timeout="48h")).json()["id"] == request_id
    async with Redis.from_url(settings.store_url) as store:
        left_ms = await store.pttl(TenantKeys("default").idempotency(f"aap:{bot.id}", "one"))
    assert 10 * DAY_MS - 60_000 < left_ms <= 10 * DAY_MS

    record = await find(world.wiring, request_id)
    assert await forget_old(world.wiring, now_ms + 11 * DAY_MS) == (1, 1)
    assert (await bot.client.get(f"/requests/{request_id}")).status_code == 404
    assert await world.wiring.runs.trail(record.run.id) == []


async def test_erased_request_still_has_its_decision(world: World, bot: InstanceClient) -> None:
    wiring = copy(world.wiring)
    wiring.settings = world.wiring.settings.model_copy(update={"keep_calls_days": 1})
    before = (await bot.ask(key="one", timeout="10m")).json()
    assert (await bot.client.delete(f"/requests/{before['id']}")).status_code == 200
    now_ms = await wiring.schedule.now_ms()
    assert await erase_old(wiring, now_ms + 7 * DAY_MS) == 0, "the protocol promises it for longer"
    assert await erase_old(wiring, now_ms + 9 * DAY_MS) == 1
    after = (await bot.client.get(f"/requests/{before['id']}")).json()
    assert (after["status"], after["arguments"], after["timeout"]) == ("cancelled", {}, "600s")
    assert (after["tool"], after["deadline_at"]) == (before["tool"], before["deadline_at"])
    assert "agent_reasoning" not in after
