"""One client per desk and key for all calls of a process, and one per event loop: its connections are kept."""

import asyncio
import atexit
import os
from collections.abc import AsyncIterator
from typing import Any

from sayso.client.clients import AsyncClient, Client

_Address = tuple[str | None, str | None]

_CLIENTS: dict[_Address, Client] = {}
_ASYNC_CLIENTS: dict[asyncio.AbstractEventLoop, dict[_Address, tuple[AsyncClient, AsyncIterator[None]]]] = {}


def find_client() -> Client:
    """Return the process's client of the desk and key that the environment names. All threads use it."""
    address = _read_address()
    if (client := _CLIENTS.get(address)) is None:
        client = _CLIENTS.setdefault(address, Client())
    return client


async def find_async_client() -> AsyncClient:
    """Return the event loop's client of the desk and key that the environment names."""
    loop, address = asyncio.get_running_loop(), _read_address()
    if (clients := _ASYNC_CLIENTS.get(loop)) is None:
        for closed in [other for other in _ASYNC_CLIENTS if other.is_closed()]:
            _ASYNC_CLIENTS.pop(closed, None)
        clients = _ASYNC_CLIENTS.setdefault(loop, {})
    if address not in clients:
        client = AsyncClient()
        closing = _close_with_loop(client, clients, address)
        clients[address] = client, closing
        await anext(closing)
    return clients[address][0]


async def _close_with_loop(client: AsyncClient, clients: dict[_Address, Any], address: _Address) -> AsyncIterator[None]:
    """Yield once. An event loop closes its open generators before it ends, as `asyncio.run` does, and so the client."""
    try:
        yield
    finally:
        clients.pop(address, None)
        await client.close()


def _read_address() -> _Address:
    return os.environ.get("SAYSO_URL"), os.environ.get("SAYSO_KEY")


@atexit.register
def _close() -> None:
    while _CLIENTS:
        _CLIENTS.popitem()[1].close()


def _forget() -> None:
    """Drop the clients of the parent process without closing them: it still uses their connections.

    Those of its event loops are never found again, since a child runs loops of its own.
    """
    _CLIENTS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
