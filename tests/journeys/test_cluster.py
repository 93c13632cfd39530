"""Two tenants in a cluster of three primaries with replicas: a slot moves and a primary dies under load, 0 lost."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from redis import Redis

from demo.clients import Client
from demo.journeys import REVIEWER
from demo.stacks import Stack
from launch.server import running_server
from launch.stops import wait_until
from sayso.core.canonical_json import JsonObject
from sayso.core.records.events import EventType
from sayso.core.records.suspensions import RunStatus
from tests.clusters import running_cluster
from tests.journeys.paying_agents import TURNS, paid_in
from tests.journeys.stacks import PATIENCE_S, pids_of, quick_stack
from tests.journeys.test_restore import SKIP

TENANTS = {"acme": "http://acme.example", "hooli": "http://hooli.example"}
POLICY = "version: 1\ndefault: request_approval\nrules: []\n"
CLIENTS = 2
PROGRAMS = ("service", "worker", "clock")
RUN_AGAIN: JsonObject = {"action": "value", "value": {"choice": "run_again"}}


@dataclass
class Load:
    """Runs that are asked for, approved and executed one after the other, and how each ended."""

    agent: Client
    reviewer: Client
    home: Path
    over: asyncio.Event
    decided: Counter[str] = field(default_factory=Counter)
    ended: dict[str, RunStatus] = field(default_factory=dict)

    async def repeat(self, name: str) -> None:
        number = 0
        while not self.over.is_set():
            number += 1
            run = await self.agent.start_run("payer", "Pay.", "A run", key=f"{name}-{number}")
            async for entry in self.agent.follow(run.id):
                if entry.type == EventType.RUN_PAUSED:
                    await self.approve(run.id, str(entry.data["payload"]["suspension_id"]))
            self.ended[run.id] = (await self.agent.await_end(run.id)).status

    async def approve(self, run_id: str, suspension_id: str) -> None:
        """Approve a call. About one in doubt, as where a worker lost its lease with the primary, say whether it ran."""
        (item,) = (await self.reviewer.find_suspension(suspension_id)).items
        (raw,) = json.loads(await self.reviewer._send("GET", f"/api/v1/suspensions/{suspension_id}"))["items"]
        if item.outcome is None and raw["doubt"] is not None:
            ran = raw["doubt"]["idempotency_key"] in paid_in(self.home)
            answer = SKIP if ran else RUN_AGAIN
            await self.reviewer.decide(suspension_id, item, answer, key=f"doubt-{suspension_id}")
        elif item.outcome is None:
            await self.reviewer.decide(suspension_id, item, {"action": "approve"}, key=f"approve-{suspension_id}")
            self.decided[run_id] += 1

    async def goes_on(self, by: int = 2) -> None:
        """Wait until so many more runs have ended."""
        least = len(self.ended) + by
        assert await asyncio.to_thread(wait_until, lambda: len(self.ended) >= least, PATIENCE_S)


@asynccontextmanager
async def loading(stack: Stack) -> AsyncIterator[Mapping[str, Load]]:
    """Keep runs going for both tenants during the block, and let all end after it."""
    over = asyncio.Event()
    async with AsyncExitStack() as clients:
        loads = {}
        for tenant, url in TENANTS.items():
            headers = {"Host": url.removeprefix("http://")}
            http = await clients.enter_async_context(httpx.AsyncClient(base_url=stack.url, headers=headers))
            agent = Client(http, stack.agent_key)
            await agent.await_agent("payer")
            loads[tenant] = Load(agent, await Client(http).sign_in(REVIEWER, stack.admin_password), stack.home, over)
        async with asyncio.TaskGroup() as tasks:
            for tenant, load in loads.items():
                for number in range(CLIENTS):
                    tasks.create_task(load.repeat(f"{tenant}-{number}"))
            try:
                yield loads
            finally:
                over.set()


async def test_nothing_is_lost_when_a_slot_moves_and_a_primary_dies(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    rows = {name: {"public_url": url, "policy": "policy.yaml"} for name, url in TENANTS.items()}
    (tmp_path / "tenants.yaml").write_text(json.dumps({"tenants": rows}))
    (tmp_path / "servers").mkdir()
    with (
        running_server(tmp_path / "queue") as queue_url,
        running_cluster(tmp_path / "servers", "pa55word", options=("--min-replicas-to-write", "1")) as cluster,
        quick_stack(
            tmp_path / "home",
            SAYSO_REDIS_URL=cluster.url,
            SAYSO_QUEUE_URL=queue_url,
            SAYSO_TENANTS=str(tmp_path / "tenants.yaml"),
            SAYSO_REPLICAS="1",
            SAYSO_MODEL_URL="http://127.0.0.1:9/v1",  # of the demo, whose program serves one tenant
            SAYSO_AGENTS="tests.journeys.paying_agents:payer",
        ) as stack,
    ):
        acme, hooli = map(cluster.find_primary, TENANTS)
        assert acme != hooli
        before = {name: pids_of(stack, name) for name in PROGRAMS}
        async with loading(stack) as loads:
            for load in loads.values():
                await load.goes_on()
            (free,) = {*cluster.others("acme")} - {hooli}
            await asyncio.to_thread(cluster.move, "acme", free)
            await loads["acme"].goes_on()
            await asyncio.to_thread(cluster.move_by_key, "hooli", acme)
            await loads["hooli"].goes_on()
            cluster.kill(free)
            assert await asyncio.to_thread(wait_until, lambda: cluster.find_primary("acme") != free, PATIENCE_S)
            cluster.start(free)
            for load in loads.values():
                await load.goes_on()

        runs = sum(len(load.ended) for load in loads.values())
        paid = paid_in(stack.home)
        assert {status for load in loads.values() for status in load.ended.values()} == {RunStatus.COMPLETED}
        assert {count for load in loads.values() for count in load.decided.values()} == {TURNS}
        assert (len(paid), len(set(paid))) == (TURNS * runs, TURNS * runs)
        assert {name: pids_of(stack, name) for name in PROGRAMS} == before
        with Redis.from_url(queue_url) as queue:
            assert {name.partition(b":")[0] for name in queue.keys("*")} == {b"rq"}
