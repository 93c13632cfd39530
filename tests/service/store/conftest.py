"""The store's parts, on a clean server."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from service.store.connection.connecting import connect
from service.store.suspensions.saving import Suspensions
from tests.builders import store_of


@pytest.fixture
async def redis(clean_store_url: str) -> AsyncIterator[Redis]:
    """A client of it."""
    client = connect(clean_store_url)
    yield client
    await client.aclose()


@pytest.fixture
def store(redis: Redis) -> Suspensions:
    """The way to its records."""
    return Suspensions(store_of(redis))
