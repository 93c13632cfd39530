"""Start what is measured: Sayso, or floor A, each with its own server, as real processes; then park and decide.

Both are driven in the same way: `park` leaves a call waiting, `decide` approves it, and the tool says when it starts.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
from redis import Redis

from benchmarks.clients import STAMPS, Clients
from launch.server import running_server
from launch.waits import wait_until
from service.settings import CHECKOUT
from service.settings.limits import UNLIMITED

READY_S = 60
_NOTE = "The customer says that the parcel came open and two of the six cups were broken; a photo is in the ticket. "


@dataclass(frozen=True)
class Parked:
    """A call that waits: its name, and what a decision on it has to say."""

    name: str
    place: str
    digest: str = ""


class Peer(Protocol):
    """Something that parks calls until somebody decides."""

    async def park(self, name: str, size: int = 300) -> Parked:
        """Leave a call waiting, with about `size` bytes of arguments."""
        ...

    async def decide(self, parked: Parked) -> None:
        """Approve it."""
        ...


def arguments(name: str, size: int) -> dict[str, Any]:
    """Arguments of about `size` bytes, different for every call."""
    words = _NOTE + secrets.token_hex(8)
    return {"name": name, "note": (words * (size // len(words) + 1))[: max(0, size - 60)], "amount": 250.5}


class FloorA:
    """The floor, over HTTP."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def park(self, name: str, size: int = 300) -> Parked:
        """Leave a call waiting."""
        await self._clients.call("POST", "/park", {"id": name, "args": arguments(name, size)})
        return Parked(name, f"/decide/{name}")

    async def decide(self, parked: Parked) -> None:
        """Approve it."""
        await self._clients.call("POST", parked.place)


class Sayso:
    """Sayso, over HTTP: an agent's key asks, a reviewer's session decides."""

    def __init__(self, agent: Clients, reviewer: Clients) -> None:
        self._agent = agent
        self._reviewer = reviewer

    async def park(self, name: str, size: int = 300) -> Parked:
        """Leave a call waiting."""
        body = {"agent": "bench", "calls": [{"tool": "refund", "args": arguments(name, size)}]}
        asked = json.loads(await self._agent.call("POST", "/api/v1/suspensions", body))
        place = f"/api/v1/suspensions/{asked['id']}/items/i1/decision"
        return Parked(name, place, asked["items"][0]["digest"])

    async def decide(self, parked: Parked) -> None:
        """Approve it."""
        await self._reviewer.call("POST", parked.place, {"action": "approve", "digest": parked.digest})


@dataclass
class Running:
    """A peer's processes, its server and its port."""

    port: int
    url: str
    processes: dict[str, subprocess.Popen[bytes]]
    password: str = ""
    key: str = ""

    def memory_bytes(self) -> int:
        """What the server holds now."""
        with Redis.from_url(self.url) as client:
            return int(client.info("memory")["used_memory"])

    def disk_bytes(self) -> int:
        """What the server's append-only file takes now."""
        with Redis.from_url(self.url) as client:
            return int(client.info("persistence")["aof_current_size"])

    def resident_bytes(self, kind: str = "") -> int:
        """What the peer's processes of a kind hold, with all that they forked and without the server."""
        pids = [process.pid for name, process in self.processes.items() if name.startswith(kind)]
        return sum(_resident_bytes(one) for pid in pids for one in (pid, *_children_of(pid)))

    def set_fsync(self, policy: str) -> None:
        """Have the server sync `always` or `everysec`."""
        with Redis.from_url(self.url) as client:
            client.config_set("appendfsync", policy)


@contextmanager
def running_floor(home: Path, port: int, stamps: str, fsync: str) -> Iterator[Running]:
    """Run floor A for the length of the block."""
    with running_server(home) as url, _processes({STAMPS: stamps}) as start:
        service = start("benchmarks.floor_a", "service", str(port), url)
        worker = start("benchmarks.floor_a", "worker", url)
        running = Running(port, url, {"service": service, "worker": worker})
        running.set_fsync(fsync)
        _wait_ready(lambda: _answers(port, "/openapi.json"))
        yield running


@contextmanager
def running_rq(home: Path, stamps: str, fsync: str) -> Iterator[Running]:
    """Run floor B for the length of the block."""
    with running_server(home) as url, _processes({STAMPS: stamps}) as start:
        running = Running(0, url, {"worker": start("benchmarks.floor_b", url)})
        running.set_fsync(fsync)
        yield running


@contextmanager
def running_sayso(home: Path, port: int, stamps: str, fsync: str, workers: int = 1) -> Iterator[Running]:
    """Run Sayso for the length of the block."""
    password, key = secrets.token_hex(12), secrets.token_hex(24)
    with running_server(home) as url:
        environ = {
            STAMPS: stamps,
            "SAYSO_HOME": str(home),
            "REDIS_URL": url,
            "SAYSO_PORT": str(port),
            "SAYSO_AGENTS": "benchmarks.agents:bench",
            "SAYSO_POLICY": str(CHECKOUT / "benchmarks" / "policy.yaml"),
            "SAYSO_ALLOW_WEAK_DURABILITY": "true",
            "SAYSO_LOG_LEVEL": "ERROR",
            **UNLIMITED,
        }
        secret = {"SAYSO_ADMIN_PASSWORD": password, "SAYSO_AGENT_KEY": key}
        subprocess.run(
            [sys.executable, "-m", "service.setup"],
            env={**os.environ, **environ, **secret},
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=CHECKOUT,
        )
        with _processes(environ) as start:
            programs = {"service": start("service"), "clock": start("workers.clock")}
            programs |= {f"worker-{number}": start("workers") for number in range(workers)}
            running = Running(port, url, programs, password, key)
            running.set_fsync(fsync)
            _wait_ready(lambda: _answers(port, "/readyz") and _registered(url))
            yield running


async def connect_sayso(running: Running, count: int) -> tuple[Sayso, list[Clients]]:
    """Return Sayso seen through `count` connections of an agent and as many of a reviewer."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as http:
        signed_in = await http.post("/api/v1/sessions", json={"name": "admin", "password": running.password})
    token = signed_in.json()["token"]
    agent = await Clients.open(running.port, {"Authorization": f"Bearer {running.key}"}, count)
    reviewer = await Clients.open(running.port, {"Authorization": f"Bearer {token}"}, count)
    return Sayso(agent, reviewer), [agent, reviewer]


async def connect_floor(running: Running, count: int) -> tuple[FloorA, list[Clients]]:
    """Return the floor seen through `count` connections."""
    clients = await Clients.open(running.port, {}, count)
    return FloorA(clients), [clients]


@contextmanager
def _processes(environ: dict[str, str]) -> Iterator[Any]:
    started: list[subprocess.Popen[bytes]] = []

    def start(module: str, *args: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", module, *args]
        process = subprocess.Popen(command, env={**os.environ, **environ}, cwd=CHECKOUT, stdout=subprocess.DEVNULL)
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _resident_bytes(pid: int) -> int:
    """A process that has ended meanwhile holds nothing."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _wait_ready(condition: Callable[[], bool]) -> None:
    if not wait_until(condition, READY_S):
        raise RuntimeError(f"what is to be measured was not ready within {READY_S} s")


def _answers(port: int, path: str) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 200
    except httpx.TransportError:
        return False


def _registered(url: str) -> bool:
    with Redis.from_url(url) as client:
        return bool(client.hexists("sayso:{default}:agents", "bench"))
