"""Give every test that needs one a real store: one private server a pytest process, emptied for each test."""

import gc
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest
import structlog
from redis import Redis

from launch.server import running_server
from service.assembly import assemble
from service.core.outgoing import http as posts
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.receivers import Receiver, make_certificate, receiving
from tests.shares import keep_share

# By itself structlog prints the local variables of every frame, which takes seconds where one is a record.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


# A drawn example on a busy machine may take any time.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Mark the tests that need the browser, so that `make pages` runs them and `make test` does not; keep a share."""
    for one in items:
        if "browser" in one.fixturenames:
            one.add_marker(pytest.mark.browser)
    keep_share(config, items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the collected tests from each later garbage collection, which takes longer than most tests."""
    gc.collect()
    gc.freeze()


MEMORY = Path("/dev/shm")
FREE_BYTES = 4 * 1024**3  # files of the store grow to about 500 MB


@pytest.fixture(scope="session")
def store_url() -> Iterator[str]:
    """The URL of a real server, as durable as the one in use; other tests of this process have left things in it.

    Its files lie in memory where there is enough: syncing each write to a disk takes as long as the rest of a test.
    """
    has_room = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > FREE_BYTES
    folder = TemporaryDirectory(prefix="sayso-", dir=MEMORY if has_room else None)
    with folder as name, running_server(Path(name)) as url:
        yield url


@pytest.fixture
def clean_store_url(store_url: str) -> str:
    """The URL of the same server with nothing in it."""
    empty(store_url)
    return store_url


@pytest.fixture(scope="module")
def module_store_url(store_url: str) -> str:
    """The URL of the same server with nothing in it before the first test of a module that shares what it serves."""
    empty(store_url)
    return store_url


def empty(store_url: str) -> None:
    """Remove everything from the store."""
    _client_of(store_url).flushall()


@cache
def _client_of(store_url: str) -> Redis:
    return Redis.from_url(store_url)


@pytest.fixture
def rules() -> str:
    """Rules that ask about every call; a test module may have its own."""
    return "version: 1\ndefault: request_approval\nrules: []\n"


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path, rules: str) -> AsyncIterator[Wiring]:
    """The parts of a process on a store of its own, with the module's rules."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(rules)
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wired:
        yield wired


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A receiver's certificate for this machine; its authority is one of those we trust."""
    own, authority = make_certificate(tmp_path_factory.mktemp("certificates"))
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("SSL_CERT_FILE", str(authority))
        posts._trust.cache_clear()
        yield own
    posts._trust.cache_clear()


@pytest.fixture
def receiver(certificate: Path) -> Iterator[Receiver]:
    """A receiver of signed messages at https://localhost."""
    with receiving(certificate) as receiver:
        yield receiver
