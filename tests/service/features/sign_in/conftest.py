"""A provider that can lie, and a desk whose people sign in with it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from service.core.settings import Settings
from tests.fakes.provider import FakeProvider, running_provider
from tests.service.edge.web.sites import settings_for, visit
from tests.service.features.sign_in.browsers import Browser, write_file


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def settings_fields(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Further fields of the provider in the file; a test may give its own."""
    return getattr(request, "param", {})


@pytest.fixture
def settings_plan(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Further fields of the file; a test may give its own."""
    return getattr(request, "param", {})


@pytest.fixture
def settings(
    clean_store_url: str,
    tmp_path: Path,
    provider: FakeProvider,
    settings_fields: dict[str, Any],
    settings_plan: dict[str, Any],
) -> Settings:
    file = write_file(tmp_path, provider.url, settings_plan, **settings_fields)
    fields = {"sign_in": str(file), "internal_receivers": urlsplit(provider.url).netloc}
    return settings_for(clean_store_url, tmp_path, **fields)


@pytest.fixture
async def guest(settings: Settings, provider: FakeProvider) -> AsyncIterator[Browser]:
    """Somebody who has not signed in."""
    async with visit(settings, None) as visitor:
        yield Browser(visitor, provider)
