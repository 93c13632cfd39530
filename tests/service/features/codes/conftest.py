"""A desk with a key file, so that secrets of authenticator apps can be kept."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file
from service.core.settings import Settings
from tests.service.edge.web.sites import Visit, settings_for, visit


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    create_key_file(tmp_path / "key")
    return settings_for(clean_store_url, tmp_path, key_file=str(tmp_path / "key"))


@pytest.fixture
async def anna(settings: Settings) -> AsyncIterator[Visit]:
    """Anna, who has just signed in."""
    async with visit(settings) as visitor:
        yield visitor


@pytest.fixture
async def guest(settings: Settings) -> AsyncIterator[Visit]:
    """Somebody who is not signed in."""
    async with visit(settings, None) as visitor:
        yield visitor
