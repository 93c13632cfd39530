"""Sayso: an agent's key suspends, a reviewer's session decides."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import httpx
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from benchmarks.clients import STAMPS, Clients
from benchmarks.peers import SuspendedCall, arguments
from benchmarks.peers.processes import Running, answers, starting, wait_ready
from launch.server import running_server
from service.core.settings import CHECKOUT
from service.core.settings.limits import TENANT, UNLIMITED
from service.core.store.connection.pipeline import Pipeline
from service.core.store.connection.watch import ALIVE_EVERY_S, Channels
from service.core.store.keys import CHANGES, keys_of
from service.core.store.suspensions.reading import unpack_body

_LONGEST_S = 60


class Sayso:
    """Calls that an agent asks for over HTTP. A worker executes each approved call."""

    def __init__(self, agent: Clients, reviewer: Clients) -> None:
        self.agent = agent
        self._reviewer = reviewer

    async def suspend(self, name: str, size: int = 300) -> SuspendedCall:
        """Suspend a call."""
        body = {"agent": "bench", "calls": [{"tool": "refund", "args": arguments(name, size)}]}
        created = json.loads(await self.agent.call("POST", "/api/v1/suspensions", body))
        return point_to(name, created["id"], created["items"][0]["digest"])

    async def decide(self, suspended: SuspendedCall) -> None:
        """Approve the call."""
        await self._reviewer.call("POST", suspended.path, {"action": "approve", "digest": suspended.digest})


class SaysoRuns(Sayso):
    """Runs of Sayso's own runner: a worker drives the agent to its call, and from the decision to its end."""

    def __init__(self, calls: Sayso, redis: Redis) -> None:
        super().__init__(calls.agent, calls._reviewer)
        self._redis, self._store = redis, Pipeline(redis)
        self._following: dict[str, asyncio.Future[str]] = {}

    async def listen(self) -> None:
        """Hear which suspensions follow others, until cancelled."""
        channels = await Channels.open(self._redis, self._note)
        channels.subscribe((f"{CHANGES}{TENANT}",))
        try:
            await channels.run(ALIVE_EVERY_S)
        finally:
            channels.close()
            self._store.close()

    async def suspend(self, name: str, size: int = 300) -> SuspendedCall:
        """Start a run and wait until it is suspended.

        The driver learns of the item from the store, as cheaply as a call's answer tells it, so that the measured work
        is the same.
        """
        body = {"agent": "bench", "input": json.dumps(arguments(name, size))}
        run = json.loads(await self.agent.call("POST", "/api/v1/runs", body))
        suspension_id = await self._find_following(run["suspension_id"])
        raw = await self._store.ask("GET", keys_of(TENANT).suspension(suspension_id))
        record = json.loads(unpack_body(raw.split(b"|", 4)[4]))
        return point_to(name, suspension_id, record["items"][0]["digest"])

    async def _find_following(self, suspension_id: str) -> str:
        following = await asyncio.wait_for(self._expect(suspension_id), _LONGEST_S)
        del self._following[suspension_id]
        return following

    def _note(self, channel: bytes, names: bytes | None) -> None:
        changed = (names or b"").decode().split()  # a joined notification names more, and none follows another
        if len(changed) == 2 and not (follows := self._expect(changed[0])).done():
            follows.set_result(changed[1])

    def _expect(self, suspension_id: str) -> asyncio.Future[str]:
        """Return the future of the suspension that follows this one; it may be known before it is asked for."""
        return self._following.setdefault(suspension_id, asyncio.get_running_loop().create_future())


def point_to(name: str, suspension_id: str, digest: str) -> SuspendedCall:
    """Return the suspended call of a suspension with one item."""
    return SuspendedCall(name, f"/api/v1/suspensions/{suspension_id}/items/i1/decision", digest)


class Place(NamedTuple):
    """A tenant of a cluster: the cluster's URL, that of the primary of its slot, and that of the queue's store."""

    cluster: str
    primary: str
    queue: str
    tenant: str


@contextmanager
def running_sayso(
    home: Path, port: int, stamps: str, fsync: str, workers: int = 1, services: int = 1, place: Place | None = None
) -> Iterator[Running]:
    """Run Sayso during the block, on a store of its own or at a place. Each further service has the next port."""
    password, key = secrets.token_hex(12), secrets.token_hex(24)
    with nullcontext(place.primary) if place else running_server(home) as url:
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
        if place:
            environ |= {"REDIS_URL": place.cluster, "SAYSO_QUEUE_URL": place.queue, "SAYSO_TENANT": place.tenant}
        tenant = place.tenant if place else TENANT
        secret = {"SAYSO_ADMIN_PASSWORD": password, "SAYSO_KEY": key}
        subprocess.run(
            [sys.executable, "-m", "service.setup"],
            env={**os.environ, **environ, **secret},
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=CHECKOUT,
        )
        with starting(environ) as start:
            programs = {"service": start("service"), "clock": start("workers.clock")}
            programs |= {f"worker-{number}": start("workers") for number in range(workers)}
            further = range(port + 1, port + services)
            programs |= {f"service-{also}": start("service", SAYSO_PORT=str(also)) for also in further}
            running = Running(port, url, programs, password, key)
            running.set_fsync(fsync)
            wait_ready(lambda: all(answers(each, "/readyz") for each in (port, *further)) and _registered(url, tenant))
            yield running


async def connect_sayso(running: Running, count: int, services: int = 1) -> tuple[Sayso, list[Clients]]:
    """Return Sayso with `count` connections of an agent and as many of a reviewer, to each service in turn."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as http:
        signed_in = await http.post("/api/v1/sessions", json={"name": "admin", "password": running.password})
    token = signed_in.json()["token"]
    agent = await Clients.open(running.port, {"Authorization": f"Bearer {running.key}"}, count, services)
    reviewer = await Clients.open(running.port, {"Authorization": f"Bearer {token}"}, count, services)
    return Sayso(agent, reviewer), [agent, reviewer]


def _registered(url: str, tenant: str) -> bool:
    with BlockingRedis.from_url(url) as client:
        return bool(client.hexists(keys_of(tenant).agents, "bench"))
