"""Fixtures of the workers' tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from service.assembly import assemble
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.workers.runs import POLICY, TURNS, drop, look_up, ran, refund
from workers.resume import driving as resume


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wiring]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    ran.clear()
    agent = Agent(name="a", instructions="x", tools=(look_up, refund, drop), model=ScriptedModel(TURNS))
    monkeypatch.setitem(resume.agents, "a", agent)
    settings = Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, lease_s=1, drain_window_s=60)
    async with assemble(settings) as wired:
        yield wired


@pytest.fixture
async def redis(clean_store_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(clean_store_url) as client:
        yield client
