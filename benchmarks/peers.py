"""The measured systems: Sayso and the floors, each with its own server, as real processes.

All are driven in the same way: `suspend` creates a waiting call, `decide` approves it, and the tool reports its start.
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
class SuspendedCall:
    """A waiting call: its name, and the path and digest of its decision."""

    name: str
    path: str
    digest: str = ""


class Peer(Protocol):
    """A system that suspends calls until somebody decides."""

    async def suspend(self, name: str, size: int = 300) -> SuspendedCall:
        """Suspend a call with about `size` bytes of arguments."""
        ...

    async def decide(self, suspended: SuspendedCall) -> None:
        """Approve the call."""
        ...


def arguments(name: str, size: int) -> dict[str, Any]:
    """Return arguments of about `size` bytes, different for every call."""
    text = _NOTE + secrets.token_hex(8)
    return {"name": name, "note": (text * (size // len(text) + 1))[: max(0, size - 60)], "amount": 250.5}


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


class Sayso:
    """Sayso over HTTP: an agent's key suspends, a reviewer's session decides."""

    def __init__(self, agent: Clients, reviewer: Clients) -> None:
        self._agent = agent
        self._reviewer = reviewer

    async def suspend(self, name: str, size: int = 300) -> SuspendedCall:
        """Suspend a call."""
        body = {"agent": "bench", "calls": [{"tool": "refund", "args": arguments(name, size)}]}
        created = json.loads(await self._agent.call("POST", "/api/v1/suspensions", body))
        path = f"/api/v1/suspensions/{created['id']}/items/i1/decision"
        return SuspendedCall(name, path, created["items"][0]["digest"])

    async def decide(self, suspended: SuspendedCall) -> None:
        """Approve the call."""
        await self._reviewer.call("POST", suspended.path, {"action": "approve", "digest": suspended.digest})


@dataclass
class Running:
    """A peer's processes, its server and its port."""

    port: int
    url: str
    processes: dict[str, subprocess.Popen[bytes]]
    password: str = ""
    key: str = ""

    def memory_bytes(self) -> int:
        """Return the memory that the server uses."""
        with Redis.from_url(self.url) as client:
            return int(client.info("memory")["used_memory"])

    def disk_bytes(self) -> int:
        """Return the size of the server's append-only file."""
        with Redis.from_url(self.url) as client:
            return int(client.info("persistence")["aof_current_size"])

    def resident_bytes(self, kind: str = "") -> int:
        """Return the memory of the peer's processes of a kind with their children, without the server."""
        pids = [process.pid for name, process in self.processes.items() if name.startswith(kind)]
        return sum(_resident_bytes(one) for pid in pids for one in (pid, *_children_of(pid)))

    def set_fsync(self, policy: str) -> None:
        """Set the server to sync `always` or `everysec`."""
        with Redis.from_url(self.url) as client:
            client.config_set("appendfsync", policy)


@contextmanager
def running_floor(home: Path, port: int, stamps: str, fsync: str) -> Iterator[Running]:
    """Run floor A for the duration of the block."""
    with running_server(home) as url, _processes({STAMPS: stamps}) as start:
        service = start("benchmarks.floor_a", "service", str(port), url)
        worker = start("benchmarks.floor_a", "worker", url)
        running = Running(port, url, {"service": service, "worker": worker})
        running.set_fsync(fsync)
        _wait_ready(lambda: _answers(port, "/openapi.json"))
        yield running


@contextmanager
def running_rq(home: Path, stamps: str, fsync: str) -> Iterator[Running]:
    """Run floor B for the duration of the block."""
    with running_server(home) as url, _processes({STAMPS: stamps}) as start:
        running = Running(0, url, {"worker": start("benchmarks.floor_b", url)})
        running.set_fsync(fsync)
        yield running


@contextmanager
def running_sayso(home: Path, port: int, stamps: str, fsync: str, workers: int = 1) -> Iterator[Running]:
    """Run Sayso for the duration of the block."""
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
    """Return Sayso with `count` connections of an agent and as many of a reviewer."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as http:
        signed_in = await http.post("/api/v1/sessions", json={"name": "admin", "password": running.password})
    token = signed_in.json()["token"]
    agent = await Clients.open(running.port, {"Authorization": f"Bearer {running.key}"}, count)
    reviewer = await Clients.open(running.port, {"Authorization": f"Bearer {token}"}, count)
    return Sayso(agent, reviewer), [agent, reviewer]


async def connect_floor(running: Running, count: int) -> tuple[FloorA, list[Clients]]:
    """Return floor A with `count` connections."""
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
    """Return the resident memory; 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _wait_ready(condition: Callable[[], bool]) -> None:
    if not wait_until(condition, READY_S):
        raise RuntimeError(f"the processes were not ready within {READY_S} s; see their output")


def _answers(port: int, path: str) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 200
    except httpx.TransportError:
        return False


def _registered(url: str) -> bool:
    with Redis.from_url(url) as client:
        return bool(client.hexists("sayso:{default}:agents", "bench"))
