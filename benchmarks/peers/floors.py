"""The floors, as the driver sees them: processes and requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.clients import STAMPS, Clients
from benchmarks.peers import SuspendedCall, arguments
from benchmarks.peers.processes import Running, answers, starting, wait_ready
from launch.server import running_server


class FloorA:
    """Floor A over HTTP."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def suspend(self, name: str, size: int = 300) -> SuspendedCall:
        """Suspend a call."""
        await self._clients.call("POST", "/suspend", {"id": name, "args": arguments(name, size)})
        return SuspendedCall(name, f"/decide/{name}")

    async def decide(self, suspended: SuspendedCall) -> None:
        """Approve the call."""
        await self._clients.call("POST", suspended.path)


@contextmanager
def running_floor(home: Path, port: int, stamps: str, fsync: str) -> Iterator[Running]:
    """Run floor A for the duration of the block."""
    with running_server(home) as url, starting({STAMPS: stamps}) as start:
        service = start("benchmarks.peers.floor_a", "service", str(port), url)
        worker = start("benchmarks.peers.floor_a", "worker", url)
        running = Running(port, url, {"service": service, "worker": worker})
        running.set_fsync(fsync)
        wait_ready(lambda: answers(port, "/openapi.json"))
        yield running


@contextmanager
def running_rq(home: Path, stamps: str, fsync: str) -> Iterator[Running]:
    """Run floor B for the duration of the block."""
    with running_server(home) as url, starting({STAMPS: stamps}) as start:
        running = Running(0, url, {"worker": start("benchmarks.peers.floor_b", url)})
        running.set_fsync(fsync)
        yield running
