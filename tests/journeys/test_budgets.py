"""Many runs use up one budget and one rate while their workers are killed: never over by one, never short by one."""

import asyncio
import json
from pathlib import Path

from redis import Redis

from demo.clients import Client
from demo.journeys import connected
from demo.stacks import Stack
from launch.stops import wait_until
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.readings import UNIT
from sayso.core.records.suspensions import RunStatus
from service.core.settings import socket_path, store_url_at
from tests.journeys.paying_agents import TURNS, paid_in
from tests.journeys.stacks import PATIENCE_S, kill, quick_stack

RUNS, FIT = 64, 60
POLICY = f"""
version: 1
default: deny
rules:
  - id: payments
    tool: pay
    action: allow
    budget: {{sum: args.amount, max: {FIT * 10}, per: 1d, by: agent}}
    limit: {{count: {FIT}, per: 1d, by: agent}}
"""
AGENTS = "demo.agents:support,tests.journeys.paying_agents:payer"


async def test_killed_workers_use_up_a_budget_and_a_rate_exactly(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    environ = {"SAYSO_AGENTS": AGENTS, "SAYSO_POLICY": str(policy), "SAYSO_WORKERS": "2"}
    with quick_stack(tmp_path / "home", **environ) as stack:
        async with connected(stack) as (client, reviewer):
            await client.await_agent("payer")
            started = [await client.start_run("payer", "Pay.", f"Payment {n}", key=f"pay-{n}") for n in range(RUNS)]
            await asyncio.to_thread(kill_at, stack, (1, FIT // 3, FIT * 2 // 3))
            reviewing = asyncio.create_task(run_again(reviewer))
            ended = [await client.await_end(run.id) for run in started]
            reviewing.cancel()
        paid = paid_in(stack.home)
        assert {run.status for run in ended} == {RunStatus.COMPLETED}
        assert RUNS * TURNS > FIT
        assert len(set(paid)) == FIT, "calls in doubt ran again with their key and did not count again"
        assert read_counters(stack) == [FIT, FIT * 10 * UNIT]


def kill_at(stack: Stack, counts: tuple[int, ...]) -> None:
    """Kill all workers each time so many payments are made."""
    for count in counts:
        assert wait_until(lambda count=count: len(paid_in(stack.home)) >= count, PATIENCE_S)  # type: ignore[misc]
        kill(stack, "worker")


async def run_again(reviewer: Client) -> None:
    """Answer every call in doubt: it runs again."""
    while True:
        found = json.loads(await reviewer._send("GET", "/api/v1/suspensions"))
        for one in found["suspensions"]:
            for item in (await reviewer.find_suspension(one["id"])).items:
                if item.outcome is None:
                    answer: JsonObject = {"action": "value", "value": {"choice": "run_again"}}
                    await reviewer.decide(one["id"], item, answer, key=f"doubt-{one['id']}")
        await asyncio.sleep(0.2)  # between looks


def read_counters(stack: Stack) -> list[int]:
    """Return what the counters of the rate and the budget hold."""
    with Redis.from_url(store_url_at(socket_path(stack.home))) as redis:
        names = redis.scan_iter("*:counter:*")
        return sorted(sum(map(int, redis.hvals(name))) for name in names)
