"""Grants while processes are killed: used up exactly, given back exactly, and void once revoked."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo.clients import Client, Refused
from demo.journeys import connected
from demo.stacks import Stack
from sayso.core.canonical_json import JsonObject
from sayso.core.records.events import EventType
from sayso.core.records.suspensions import RunStatus
from tests.journeys.paying_agents import TURNS, paid_in
from tests.journeys.stacks import await_pause, kill, quick_stack
from tests.journeys.test_budgets import kill_at

RUNS, FIT = 30, 60
AGENTS = ",".join(["demo.agents:support", *(f"tests.journeys.paying_agents:{name}" for name in ("payer", "closer"))])
POLICY = """
version: 1
default: request_approval
terms: {timeout_s: 3600}
rules:
  - id: payments
    tool: pay
    action: request_approval
    grants: {longest: 1d, count: 100, sum: {of: args.amount, max: 1000}}
"""


@contextmanager
def stack_with_grants(home: Path) -> Iterator[Stack]:
    policy = home.with_name("policy.yaml")
    policy.write_text(POLICY)
    with quick_stack(home, SAYSO_AGENTS=AGENTS, SAYSO_POLICY=str(policy), SAYSO_WORKERS="2") as stack:
        yield stack


async def test_killed_workers_use_up_a_grant_exactly(tmp_path: Path) -> None:
    with stack_with_grants(tmp_path / "home") as stack:
        async with connected(stack) as (client, reviewer):
            await grant_by_run(client, reviewer, "payer", count=FIT, sum=FIT * 10)
            reviewing = asyncio.create_task(answer_all(reviewer))
            started = [await client.start_run("payer", "Pay.", f"Payment {n}", key=f"pay-{n}") for n in range(RUNS)]
            await asyncio.to_thread(kill_at, stack, (2, FIT // 3, FIT * 2 // 3))
            ended = [await client.await_end(run.id) for run in started]
            reviewing.cancel()
            assert await read_use(reviewer) == (FIT, str(FIT * 10))
        assert {run.status for run in ended} == {RunStatus.COMPLETED}
        assert (RUNS + 1) * TURNS > FIT + 1
        assert len(set(paid_in(stack.home))) == FIT + 1, "the approved call took nothing of the grant"


async def test_killed_service_gives_back_cancelled_calls_exactly(tmp_path: Path) -> None:
    with stack_with_grants(tmp_path / "home") as stack:
        async with connected(stack) as (client, reviewer):
            await grant(reviewer, (await suspend(client, "first"))["id"], count=20, sum=1000)
            asked = await among_kills(stack, *(suspend(client, f"pay-{number}") for number in range(30)))
            allowed = [one["run"]["id"] for one in asked if is_allowed(one)]
            assert len(allowed) == 20
            cancelled = [client._send("POST", f"/api/v1/runs/{one}/cancel", {}, f"end-{one}") for one in allowed[:12]]
            await among_kills(stack, *cancelled)
            assert await read_use(reviewer) == (8, "80")
            asked = await asyncio.gather(*(suspend(client, f"pay-{number}") for number in range(30, 60)))
            assert sum(map(is_allowed, asked)) == 12
            assert await read_use(reviewer) == (20, "200")


async def test_grant_revoked_while_a_batch_waits_lets_no_call_of_it_run(tmp_path: Path) -> None:
    with stack_with_grants(tmp_path / "home") as stack:
        async with connected(stack) as (client, reviewer):
            granted = await grant_by_run(client, reviewer, "closer")
            paid = len(paid_in(stack.home))
            run = await client.start_run("closer", "Pay and close.", "Waits", key="waits")
            waiting = (await await_pause(client, run.id)).suspension_id
            assert await list_open(reviewer, waiting) == ["close_account"], "the grant lets the payment run"
            kill(stack, "worker")
            await revoke(reviewer, granted)
            await decide_all(reviewer, waiting, "approve")
            async for entry in client.follow(run.id):
                if entry.type == EventType.RUN_PAUSED and entry.data["payload"]["suspension_id"] != waiting:
                    asked = entry.data["payload"]["suspension_id"]
                    assert await list_open(reviewer, asked) == ["pay"]
                    await decide_all(reviewer, asked, "deny")
            assert (await client.await_end(run.id)).status is RunStatus.COMPLETED
        assert len(paid_in(stack.home)) == paid


async def test_revoked_grant_voids_unspent_permits_at_once(tmp_path: Path) -> None:
    with stack_with_grants(tmp_path / "home") as stack:
        async with connected(stack) as (client, reviewer):
            granted = await grant(reviewer, (await suspend(client, "first"))["id"])
            permits = [await suspend(client, f"permit-{n}") for n in range(5)]
            assert all(map(is_allowed, permits))
            await redeem(client, permits[0])
            await revoke(reviewer, granted)
            found = [await redeem(client, one) for one in permits]
            assert found[0] == "", "it was redeemed before"
            assert all("which allowed it, no longer does" in one for one in found[1:])


async def grant_by_run(client: Client, reviewer: Client, agent: str, **limits: int) -> str:
    """Have a run of the agent ask, and grant its payments; return the grant's id after the run."""
    await client.await_agent(agent)
    run = await client.start_run(agent, "Pay.", "Asks", key="asks")
    made = await grant(reviewer, (await await_pause(client, run.id)).suspension_id, **limits)
    if limits:
        return made
    await client.await_end(run.id)
    return made


async def grant(reviewer: Client, suspension_id: str, **limits: int) -> str:
    """Approve all items, and grant the first; return the grant's id."""
    first, *others = (await reviewer.find_suspension(suspension_id)).items
    asked: JsonObject = {"for_s": 3600, **limits}
    await reviewer.decide(suspension_id, first, {"action": "approve", "grant": asked}, key="grant")
    for item in others:
        await reviewer.decide(suspension_id, item, {"action": "approve"}, key=f"approve-{item.item_id}")
    found = json.loads(await reviewer._send("GET", "/api/v1/grants"))
    return str(found["grants"][0]["id"])


async def revoke(reviewer: Client, grant_id: str) -> None:
    await reviewer._send("POST", f"/api/v1/grants/{grant_id}/revoke", key="revoke")


async def read_use(reviewer: Client) -> tuple[int, str]:
    """Return how many calls the only grant holds, and their sum."""
    (found,) = json.loads(await reviewer._send("GET", "/api/v1/grants"))["grants"]
    return found["calls"], found["total"]


async def list_waiting(reviewer: Client) -> list[str]:
    found = json.loads(await reviewer._send("GET", "/api/v1/suspensions"))
    return [str(one["id"]) for one in found["suspensions"]]


async def list_open(reviewer: Client, suspension_id: str) -> list[str]:
    """Return the tools of a suspension's open items."""
    return [one.tool.name for one in (await reviewer.find_suspension(suspension_id)).items if one.outcome is None]


async def decide_all(reviewer: Client, suspension_id: str, action: str) -> None:
    for item in (await reviewer.find_suspension(suspension_id)).items:
        if item.outcome is None:
            await reviewer.decide(suspension_id, item, {"action": action}, key=f"{action}-{suspension_id}")


async def answer_all(reviewer: Client) -> None:
    """Deny every payment that the grant does not cover, and let calls in doubt run again."""
    while True:
        for suspension_id in await list_waiting(reviewer):
            raw = json.loads(await reviewer._send("GET", f"/api/v1/suspensions/{suspension_id}"))
            doubtful = raw["items"][0]["kind"] != "approval"
            answer: JsonObject = (
                {"action": "value", "value": {"choice": "run_again"}} if doubtful else {"action": "deny"}
            )
            for item in (await reviewer.find_suspension(suspension_id)).items:
                if item.outcome is None:
                    await reviewer.decide(suspension_id, item, answer, key=f"answer-{suspension_id}")
        await asyncio.sleep(0.2)  # between looks


async def suspend(client: Client, key: str) -> dict[str, Any]:
    """Ask for a payment that the client makes itself."""
    call: JsonObject = {"tool": "pay", "args": {"amount": 10}, "definition": {}}
    found = json.loads(await client._send("POST", "/api/v1/suspensions", {"mode": "poll", "calls": [call]}, key))
    return dict(found)


async def among_kills(stack: Stack, *requests: Coroutine[Any, Any, Any]) -> list[Any]:
    """Send requests at once, and kill the service once the first has an answer; return all answers."""
    sent = [asyncio.create_task(one) for one in requests]
    await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.to_thread(kill, stack, "service")
    return await asyncio.gather(*sent)


def is_allowed(suspension: dict[str, Any]) -> bool:
    outcome = suspension["items"][0]["outcome"]
    return outcome is not None and outcome["verdict"] == "approved"


async def redeem(client: Client, suspension: dict[str, Any]) -> str:
    """Redeem the permit; return why it is refused, if so."""
    try:
        await client._send("POST", f"/api/v1/suspensions/{suspension['id']}/items/i1/redeem", {}, "one-holder")
    except Refused as error:
        return str(error)
    return ""
