"""Give every test that needs one a real store: one private server a pytest process, emptied for each test."""

from collections.abc import Iterator

import pytest
from redis import Redis

from launch.server import running_server


@pytest.fixture(scope="session")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real server, as durable as the one in use; other tests of this process have left things in it."""
    with running_server(tmp_path_factory.mktemp("store")) as url:
        yield url


@pytest.fixture
def clean_store_url(store_url: str) -> str:
    """The URL of the same server with nothing in it."""
    with Redis.from_url(store_url) as client:
        client.flushall()
    return store_url
