"""Give the tests of the pages a site over an empty store."""

from pathlib import Path

import pytest

from service.settings import Settings
from tests.service.web.sites import settings_for


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings over a store with nothing in it."""
    return settings_for(clean_store_url, tmp_path)


@pytest.fixture
def closed_store_url(tmp_path: Path) -> str:
    """The URL of a store where nobody listens."""
    return f"unix://{tmp_path}/nobody.sock"
