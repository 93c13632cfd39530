"""Give a test of the service the running app with the usual people and agents."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.app import create_app
from service.auth.credentials import TENANT
from service.settings import Settings
from service.store.connection.formats import check_format
from service.wiring import Wiring
from tests.builders import make_agent, make_person, register_agent
from tests.service.worlds import POLICY, World


@pytest.fixture
async def world(clean_store_url: str, settings: Settings) -> AsyncIterator[World]:
    """Agents `demo` and `other`, the reviewer `anna` and the admin `root`."""
    await check_format(clean_store_url)
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        wiring: Wiring = app.state.process.tenant(TENANT)
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
