"""Requests and their keys are kept as long as the protocol promises, even under shorter retention settings."""

from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.clock import DAY_MS
from service.settings import Settings
from service.store.keys import TenantKeys
from tests.service.api.aap.clients import InstanceClient, find
from tests.service.worlds import POLICY, World
from workers.retention import forget_old


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
