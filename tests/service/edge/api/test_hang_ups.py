"""Clients that hang up leave nothing behind: no traceback in the log, and no waiter."""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast

import pytest
import uvicorn
from redis.asyncio import Redis
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sayso.core.records.chain import write_events
from sayso.core.records.events import Event, EventType, TrailHead
from service.app import create_app
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.edge.http.connections import ServerConfig
from tests.builders import make_agent, make_pending, make_running
from tests.waits import until

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing sends a reset, as from a client that crashed."""


@dataclass
class Here:
    """A service in this event loop, so that a test sees what the process holds."""

    wiring: Wiring
    server: uvicorn.Server
    address: tuple[str, int]

    @asynccontextmanager
    async def requested(self, path: str, key: str) -> AsyncIterator[socket.socket]:
        """A client that has sent a request and reads nothing; it hangs up with a reset."""
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            await loop.sock_connect(client, self.address)
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
            await loop.sock_sendall(client, head.encode())
            yield client

    async def stuck(self) -> bool:
        """Whether the service cannot send on to some client."""
        return any(cast(HttpToolsProtocol, one).flow.write_paused for one in self.server.server_state.connections)

    async def alone(self) -> bool:
        """Whether nobody is served any more."""
        return not self.server.server_state.tasks and not self.server.server_state.connections

    def waiters(self) -> int:
        """How many requests and streams wait for a change."""
        return sum(map(len, self.wiring.watch._waiters.values()))


@pytest.fixture
async def here(settings: Settings) -> AsyncIterator[Here]:
    app = create_app(settings)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as bound:
        server = uvicorn.Server(ServerConfig(app, settings, log_config=None, lifespan="on"))
        serving = asyncio.create_task(server.serve(sockets=[bound]))

        async def started() -> bool:
            return server.started

        await until(started)
        yield Here(app.state.process.wiring, server, bound.getsockname())
        server.should_exit = True
        app.state.closing.set()
        await serving


async def make_long_run(wiring: Wiring, url: str) -> str:
    """A run that goes on, whose trail is longer than all buffers between the service and its client."""
    record = await make_running(wiring)
    events = tuple(Event(EventType.WARNING, {"message": "x" * 8_000, "n": n}) for n in range(1_000))
    _, entries = write_events(TrailHead(), events, record.updated_at_ms)
    async with Redis.from_url(url) as redis:
        trail = TenantKeys(TENANT).trail(record.run.id)
        await redis.delete(trail)
        await redis.rpush(trail, *entries)
    return record.run.id


async def test_stream_reset_by_its_reader_logs_no_traceback(
    here: Here, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    key = await make_agent(here.wiring, "demo")
    run_id = await make_long_run(here.wiring, settings.store_url)
    for _ in range(3):
        async with here.requested(f"/api/v1/runs/{run_id}/events/stream", key):
            await until(here.stuck)
        await until(here.alone)
    assert here.waiters() == 0
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("kind", ["suspension", "run"])
async def test_long_polls_end_when_their_callers_hang_up(here: Here, kind: str) -> None:
    key = await make_agent(here.wiring, "demo")
    record = await make_pending(here.wiring)
    place = f"suspensions/{record.id}" if kind == "suspension" else f"runs/{record.run.id}"

    async def all_wait() -> bool:
        return here.waiters() == 200

    async with AsyncExitStack() as stack:
        for _ in range(200):
            await stack.enter_async_context(here.requested(f"/api/v1/{place}?wait=60s", key))
        await until(all_wait)
    await until(here.alone)
    assert here.waiters() == 0


async def test_long_poll_logs_nothing_when_its_caller_hangs_up(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    key = await make_agent(here.wiring, "demo")
    record = await make_pending(here.wiring)

    async def waits() -> int:
        return here.waiters()

    async with here.requested(f"/api/v1/suspensions/{record.id}?wait=60s", key):
        await until(waits)
    await until(here.alone)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []
