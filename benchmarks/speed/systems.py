"""Each system as a round measures it: started, connected, and able to suspend many calls quickly."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.clients import Clients, Stamps
from benchmarks.fills import fill, fill_floor
from benchmarks.measures import repeat
from benchmarks.peers import Peer, SuspendedCall
from benchmarks.peers.floors import FloorA, running_floor
from benchmarks.peers.processes import Running
from benchmarks.peers.restate import Restate, running_restate
from benchmarks.peers.sayso import SaysoRuns, connect_sayso, running_sayso
from benchmarks.speed.closed_loop import AT_ONCE
from service.core.store.connection.connecting import connect

CONNECTIONS = 64
_PORTS = {"sayso": 17_700, "floor_a": 17_712, "restate": 17_713}

Fill = Callable[[str, int], Awaitable[list[SuspendedCall]]]
"""Suspends as many calls, whose names begin with the text."""


@dataclass(frozen=True)
class System:
    """A running system with open connections. `most` limits how many calls are suspended at once, for its speed."""

    running: Running
    peer: Peer
    fill: Fill
    most: int
    runs: Peer | None = None


Open = Callable[[Stamps, str], AbstractAsyncContextManager[System]]


@asynccontextmanager
async def open_sayso(stamps: Stamps, fsync: str, workers: int = 1, services: int = 1) -> AsyncIterator[System]:
    """Run Sayso; `runs` is its own runner."""
    with (
        tempfile.TemporaryDirectory() as home,
        running_sayso(Path(home), _PORTS["sayso"], stamps.path, fsync, workers, services) as running,
    ):
        async with connect(running.url) as redis:
            calls, clients = await connect_sayso(running, CONNECTIONS, services)
            runs = SaysoRuns(calls, redis)
            listening = asyncio.create_task(runs.listen())
            yield System(running, calls, partial(fill, running.url), 100_000, runs)
            listening.cancel()
            await _close(clients)


@asynccontextmanager
async def open_floor_a(stamps: Stamps, fsync: str) -> AsyncIterator[System]:
    """Run floor A."""
    with (
        tempfile.TemporaryDirectory() as home,
        running_floor(Path(home), _PORTS["floor_a"], stamps.path, fsync) as running,
    ):
        clients = await Clients.open(running.port, {}, CONNECTIONS)
        yield System(running, FloorA(clients), partial(fill_floor, running.url), 100_000)
        await _close([clients])


@asynccontextmanager
async def open_restate(stamps: Stamps, fsync: str) -> AsyncIterator[System]:
    """Run Restate, which suspends 200 to 400 calls a second and holds at most 1,000 until they are a minute old."""
    with (
        tempfile.TemporaryDirectory() as home,
        running_restate(Path(home), _PORTS["restate"], stamps.path, fsync) as running,
    ):
        clients = await Clients.open(running.port, {}, CONNECTIONS)
        peer = Restate(clients, stamps)

        async def suspend(prefix: str, count: int) -> list[SuspendedCall]:
            found: list[SuspendedCall] = []

            async def step(number: int) -> None:
                found.append(await peer.suspend(f"{prefix}{number}"))

            await repeat(count, AT_ONCE, step)
            return found

        yield System(running, peer, suspend, 1_000)
        await _close([clients])


SYSTEMS: dict[str, Open] = {"sayso": open_sayso, "floor_a": open_floor_a, "restate": open_restate}


async def _close(pools: list[Clients]) -> None:
    for clients in pools:
        await clients.close()
