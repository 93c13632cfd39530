"""Gated calls of a process share a client per desk, key and event loop."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from sayso.client import AsyncClient
from sayso.client.shared import find_async_client, find_client

URL = "http://shared.desk.test"


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a desk and a key that no other test uses."""
    monkeypatch.setenv("SAYSO_URL", URL)
    monkeypatch.setenv("SAYSO_KEY", "one")


def test_threads_share_a_client() -> None:
    with ThreadPoolExecutor(4) as pool:
        clients = {id(future.result()) for future in [pool.submit(find_client) for _ in range(8)]}
    assert clients == {id(find_client())}
    assert find_client().url == URL


def test_another_key_has_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_client()
    monkeypatch.setenv("SAYSO_KEY", "two")
    assert find_client() is not first
    assert (first.key, find_client().key) == ("one", "two")


async def find_twice() -> AsyncClient:
    """Return the client of this event loop."""
    first, second = await asyncio.gather(find_async_client(), find_async_client())
    assert first is second
    assert not first._http.is_closed
    return first


def test_each_event_loop_has_a_client_and_closes_it() -> None:
    first, second = asyncio.run(find_twice()), asyncio.run(find_twice())
    assert first is not second
    assert first._http.is_closed
    assert second._http.is_closed


def test_event_loop_gets_a_new_client_after_its_generators_were_closed() -> None:
    async def find_again() -> None:
        first = await find_twice()
        await asyncio.get_running_loop().shutdown_asyncgens()
        assert first._http.is_closed

    loop = asyncio.new_event_loop()
    loop.run_until_complete(find_again())
    loop.close()


FORKING = """
import os
from sayso.client.shared import find_client

before = find_client()
if (pid := os.fork()) == 0:
    os._exit(0 if find_client() is not before and not before._http.is_closed else 1)
assert os.waitpid(pid, 0)[1] == 0
assert find_client() is before
"""


def test_forked_process_has_a_client_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True)
