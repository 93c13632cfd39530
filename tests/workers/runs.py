"""An agent with three tools, and how its runs are started, driven and decided in tests of the workers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import RunRef, RunStatus
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import CallContext, tool
from sayso.runner.transcripts import start_state
from service.core.store.runs.runs import Run
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.sayso.samples import person
from workers.clock import ticks as clock
from workers.resume import driving as resume

POLICY = """
version: 1
default: allow
rules:
  - {id: ask-refund, tool: refund, action: request_approval, reason: money leaves, terms: {timeout_s: 60}}
  - {id: no-drop, tool: drop, action: deny, reason: never}
"""

ran: list[tuple[str, float, str]] = []


@tool(idempotent=True)
async def look_up(order: str) -> str:
    """Look an order up."""
    return f"order {order} is open"


@tool
async def refund(order: str, amount: float, call: CallContext) -> str:
    """Refund an order."""
    ran.append((order, amount, call.idempotency_key))
    return f"refunded {amount}"


@tool
def drop(table: str) -> str:
    """Drop a table."""
    raise AssertionError(f"{table} must never be dropped")


class HangingModel:
    """A model that never returns."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def complete(self, messages: object, tools: object) -> ModelTurn:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("it never returns")


def turn(*calls: tuple[str, str]) -> ModelTurn:
    calls_ = tuple(RequestedCall(call_id=f"c{n}", name=name, args_json=args) for n, (name, args) in enumerate(calls))
    return ModelTurn(text="", calls=calls_)


TURNS = [
    turn(
        ("look_up", '{"order": "A"}'),
        ("refund", '{"order": "A", "amount": 5.0}'),
        ("drop", '{"table": "orders"}'),
    ),
    ModelTurn(text="all done"),
]


@asynccontextmanager
async def draining(wiring: Wiring, holder: str = "w1") -> AsyncIterator[None]:
    stopping = asyncio.Event()
    task = asyncio.create_task(resume.Drain(wiring, holder).run(stopping))
    yield
    stopping.set()
    await task


async def start(wiring: Wiring, agent: str = "a") -> str:
    state = start_state("run_x", agent, "refund order A")
    run = RunRef(id="run_x", agent=agent, owner="bot", thread_id="t")
    await wiring.desk.start(run, seal_state(state.model_dump_json().encode()))
    return "run_x"


def make_slow_payer() -> tuple[asyncio.Event, asyncio.Event, Agent]:
    """Return an agent with a slow call: the first event is set at its start, the second ends it."""
    started, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def pay(order: str) -> str:
        """Pay for an order, slowly."""
        started.set()
        await may_end.wait()
        return f"paid {order}"

    model = ScriptedModel([turn(("pay", '{"order": "A"}')), ModelTurn(text="done")])
    return started, may_end, Agent(name="payer", instructions="x", tools=(pay,), model=model)


async def lease_shortly(wiring: Wiring, agent: str) -> Saved:
    """Start a run and lease it to `w1` for a millisecond."""
    await start(wiring, agent=agent)
    run = await wiring.runs.read("run_x")
    return await wiring.desk.lease(run.suspension_id, "w1", 1)


async def until(wiring: Wiring, *statuses: RunStatus) -> Run:
    with wiring.watch.on("run_x") as moved:
        listening = asyncio.create_task(wiring.watch.listen())
        try:
            while True:
                run = await wiring.runs.read("run_x")
                if run.status in statuses:
                    return run
                await asyncio.wait_for(moved.wait(), 20)
                moved.clear()
        finally:
            listening.cancel()


async def decide(wiring: Wiring, run: Run, **choice: Any) -> Saved:
    found = await wiring.desk.suspensions.read(run.suspension_id)
    assert found.record is not None
    item = found.record.items[0]
    request = DecisionRequest(digest=item.digest, **choice)
    return await wiring.desk.decide(run.suspension_id, item.item_id, request, person("ada"))


async def process_until_due(wiring: Wiring) -> None:
    for _ in range(100_000):
        if await clock.process_due(wiring):
            return
    raise AssertionError("nothing became due")


async def trail(wiring: Wiring) -> list[str]:
    return [entry.type for entry in await wiring.runs.trail("run_x")]


async def await_event(wiring: Wiring, kind: str, count: int = 1) -> None:
    """Wait until the trail has `count` events of this kind."""
    with wiring.watch.on("run_x") as moved:
        listening = asyncio.create_task(wiring.watch.listen())
        while (await trail(wiring)).count(kind) < count:
            await asyncio.wait_for(moved.wait(), 20)
            moved.clear()
        listening.cancel()
