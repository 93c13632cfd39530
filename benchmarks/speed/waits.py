"""Measure long polls: how soon the waiting clients of one service process are notified, and their memory.

Decisions come at a steady rate that leaves the machine idle most of the time. A client's time runs from sending its
decision until its own response, so it includes the decision's commit and the driver's lateness; both are measured too.

`python -m benchmarks.speed.waits` runs this alone.
"""

import asyncio
import json
import random
import subprocess
import tempfile
from pathlib import Path

import uvloop

from benchmarks.clients import Connection, Stamps
from benchmarks.measures import quantile
from benchmarks.peers import Peer, SuspendedCall
from benchmarks.peers.processes import Running
from benchmarks.peers.sayso import connect_sayso, running_sayso
from sayso.core.clock import monotonic_ms
from service.core.wiring import settle_memory

CLIENTS = 2_000
PER_S = 40
"""Decisions sent per second."""

_PORT = 17_731
_SETTLE_S = 2.0
_POLL_S = 0.02


async def measure_waits(peer: Peer, running: Running, count: int) -> dict[str, float]:
    """Return the time until each waiting client is notified, ms, and its memory in the service."""
    suspended = [await peer.suspend(f"wait{number}-") for number in range(count)]
    service = running.processes["service"]
    connections = [
        await Connection.open(running.port, {"Authorization": f"Bearer {running.key}"}) for _ in range(count)
    ]
    for connection in connections:
        await connection.request("GET", "/healthz")
    settle_memory()
    connected = _resident_bytes(service)
    waiting = [asyncio.create_task(_wait(*one)) for one in zip(connections, suspended, strict=True)]
    await asyncio.sleep(_SETTLE_S)
    held = _resident_bytes(service) - connected
    late_ms: list[float] = []
    watching = asyncio.create_task(_watch_lateness(late_ms))
    decided = await _decide(peer, suspended)
    notified = await asyncio.gather(*waiting)
    watching.cancel()
    for connection in connections:
        await connection.close()
    took = [at_ms - sent_ms for at_ms, (sent_ms, _) in zip(notified, decided, strict=True)]
    return {
        "notified_waiting_p50_ms": quantile(took, 0.5),
        "notified_waiting_p99_ms": quantile(took, 0.99),
        "decided_beside_waiting_p99_ms": quantile([answered - sent for sent, answered in decided], 0.99),
        "driver_late_p99_ms": quantile(late_ms, 0.99),
        "waiting_client_bytes": held / count,
    }


async def _wait(connection: Connection, suspended: SuspendedCall) -> float:
    """Poll as a client does; return the moment of the notification, ms."""
    path = suspended.path.partition("/items/")[0]
    while True:
        status, body = await connection.request("GET", f"{path}?wait=60s")
        if status != 200 or json.loads(body)["status"] != "pending":
            if status != 200:
                raise RuntimeError(f"a waiting client got status {status}: {body[:300]!r}")
            return monotonic_ms()


async def _decide(peer: Peer, suspended: list[SuspendedCall]) -> list[tuple[float, float]]:
    """Decide in random order at a steady rate; return when each decision was sent and answered."""
    moments: dict[int, tuple[float, float]] = {}
    under_way: list[asyncio.Task[None]] = []

    async def decide(number: int) -> None:
        sent_ms = monotonic_ms()
        await peer.decide(suspended[number])
        moments[number] = (sent_ms, monotonic_ms())

    order = random.sample(range(len(suspended)), len(suspended))
    began_ms = monotonic_ms()
    for place, number in enumerate(order):
        await asyncio.sleep(max(0.0, place / PER_S - (monotonic_ms() - began_ms) / 1000))
        under_way.append(asyncio.create_task(decide(number)))
    await asyncio.gather(*under_way)
    return [moments[number] for number in range(len(suspended))]


async def _watch_lateness(late_ms: list[float]) -> None:
    """Record until cancelled how late this process wakes up."""
    while True:
        due_ms = monotonic_ms() + _POLL_S * 1000
        await asyncio.sleep(_POLL_S)
        late_ms.append(monotonic_ms() - due_ms)


def _resident_bytes(process: "subprocess.Popen[bytes]") -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


async def _main() -> None:
    stamps = Stamps()
    await stamps.listen()
    with tempfile.TemporaryDirectory() as home, running_sayso(Path(home), _PORT, stamps.path, "always") as running:
        peer, connections = await connect_sayso(running, 16)
        for name, value in (await measure_waits(peer, running, CLIENTS)).items():
            print(f"{name}: {value:,.1f}")
        for connection in connections:
            await connection.close()


if __name__ == "__main__":
    uvloop.run(_main())
