"""Give the tests of the pages a site over an empty store."""

from pathlib import Path

import pytest

from service.settings import Settings
from tests.service.web.sites import settings_for


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings over a store with nothing in it."""
    return settings_for(clean_store_url, tmp_path)
