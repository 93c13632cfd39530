"""Serve the real app in the test's own process, on a real store, to one client a credential."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.settings import Settings
from service.wiring import Wiring
from tests.builders import make_agent, make_person, register_agent

POLICY = """
version: 1
default: request_approval
rules:
  - id: too-much
    tool: refund
    when: args.amount > 500
    action: deny
    reason: Nobody refunds that much
"""


@dataclass
class World:
    """A running app with the usual people and agents, and the tokens they hold."""

    app: FastAPI
    wiring: Wiring
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, who: str | None = None) -> AsyncClient:
        """A client that sends the credential of `who`; of nobody by default."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        return AsyncClient(transport=ASGITransport(app=self.app), base_url="http://sayso.test", headers=headers)


async def waiting(world: World, topic: str) -> None:
    """Return once somebody waits for the topic."""
    for _ in range(1000):
        if world.wiring.watch._waiters.get(topic):
            return
        await asyncio.sleep(0.01)  # between looks
    raise AssertionError(f"nobody waits for {topic}")


@pytest.fixture
async def world(clean_store_url: str, settings: Settings) -> AsyncIterator[World]:
    """Agents `demo` and `other`, the reviewer `anna` and the admin `root`."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        wiring: Wiring = app.state.wiring
        await register_agent(wiring)
        yield World(
            app,
            wiring,
            {
                "demo": await make_agent(wiring, "demo"),
                "other": await make_agent(wiring, "other"),
                "anna": await make_person(wiring, "anna"),
                "root": await make_person(wiring, "root", "reviewer", "admin"),
            },
        )


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings of a small store and policy; a test module may have its own."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy)
