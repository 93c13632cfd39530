"""A desk at a host that browsers know passkeys for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import Visit, settings_for, visit


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, public_url="http://localhost:8321")


@pytest.fixture
async def anna(settings: Settings) -> AsyncIterator[Visit]:
    """Anna, who has just signed in."""
    async with visit(settings) as visitor:
        yield visitor
