"""A drain takes ready runs up and drives them to their next pause or their end, against the real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sayso.errors import Conflict
from sayso.records.decisions import DecisionRequest
from sayso.records.run_state import seal_state
from sayso.records.suspensions import RunRef, RunStatus, Status
from sayso.records.tool_calls import ToolCall
from sayso.runner.agents import Agent
from sayso.runner.batches import PlannedCall
from sayso.runner.execution import run_calls
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import CallContext, tool
from sayso.runner.transcripts import start_state
from sayso.transitions.execution import Fence
from service.settings import Settings
from service.store.runs.runs import Run
from service.store.suspensions.saving import Saved
from service.wiring import Wiring, assemble
from tests.sayso.samples import person
from workers.clock import ticks as clock
from workers.resume import driving as resume
from workers.resume.journals import DeskJournal
from workers.resume.notes import keeping_notes
from workers.resume.plans import LeasedRun
from workers.resumers import RESUMERS

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


class NeverAnswers:
    """A model that takes for ever."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def complete(self, messages: object, tools: object) -> ModelTurn:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("it never answers")


def turn(*calls: tuple[str, str]) -> ModelTurn:
    asked = tuple(RequestedCall(call_id=f"c{n}", name=name, args_json=args) for n, (name, args) in enumerate(calls))
    return ModelTurn(text="", calls=asked)


TURNS = [
    turn(
        ("look_up", '{"order": "A"}'),
        ("refund", '{"order": "A", "amount": 5.0}'),
        ("drop", '{"table": "orders"}'),
    ),
    ModelTurn(text="all done"),
]


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wiring]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    ran.clear()
    agent = Agent(name="a", instructions="x", tools=(look_up, refund, drop), model=ScriptedModel(TURNS))
    monkeypatch.setitem(resume.agents, "a", agent)
    settings = Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, lease_s=1, drain_window_s=60)
    async with assemble(settings) as wired:
        yield wired


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
    """An agent whose call has begun at the first event, and ends at the second."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def pay(order: str) -> str:
        """Pay for an order, slowly."""
        begun.set()
        await may_end.wait()
        return f"paid {order}"

    model = ScriptedModel([turn(("pay", '{"order": "A"}')), ModelTurn(text="done")])
    return begun, may_end, Agent(name="payer", instructions="x", tools=(pay,), model=model)


async def lease_shortly(wiring: Wiring, agent: str) -> Saved:
    """Start a run and have `w1` take it up, for a millisecond."""
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


async def until_something_is_due(wiring: Wiring) -> None:
    for _ in range(100_000):
        if await clock.process_due(wiring):
            return
    raise AssertionError("nothing was ever due")


async def trail(wiring: Wiring) -> list[str]:
    return [entry.type for entry in await wiring.runs.trail("run_x")]


async def test_run_suspends_and_ends_as_decided(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring)
        paused = await until(wiring, RunStatus.SUSPENDED)
        assert ran == []
        await decide(wiring, paused, action="approve", args={"order": "A", "amount": 2.5})
        ended = await until(wiring, RunStatus.COMPLETED)
    assert ran == [("A", 2.5, f"{paused.suspension_id}:i1")]
    assert ended.result == {"text": "all done"}
    assert await trail(wiring) == [
        "run_started",
        "run_resuming",
        "llm_completed",
        "tool_batch_started",
        "policy_decision",
        "policy_decision",
        "policy_decision",
        "run_paused",
        "decision_recorded",
        "decided",
        "run_resuming",
        "run_resumed",
        "permit_redeemed",
        "tool_completed",
        "tool_completed",
        "tool_completed",
        "tool_batch_completed",
        "llm_completed",
        "run_completed",
    ]


async def test_denied_call_never_runs_and_the_run_continues(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="deny", message="not this one")
        await until(wiring, RunStatus.COMPLETED)
    assert ran == []
    entries = await wiring.runs.trail("run_x")
    refused = next(e for e in entries if e.type == "tool_completed" and e.data["tool_name"] == "refund")
    assert (refused.data["success"], refused.data["error"]) == (False, "not this one")


async def test_run_of_an_unknown_agent_is_postponed(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring, agent="nobody")
        with wiring.watch.on("run_x") as moved:
            listening = asyncio.create_task(wiring.watch.listen())
            while "run_postponed" not in await trail(wiring):
                await asyncio.wait_for(moved.wait(), 20)
                moved.clear()
            listening.cancel()
    run = await wiring.runs.read("run_x")
    found = await wiring.desk.suspensions.read(run.suspension_id)
    assert found.record is not None
    assert "no agent named 'nobody'" in str(found.record.receipt.error)


async def test_lost_id_is_requeued_by_the_clock(wiring: Wiring) -> None:
    await start(wiring)
    assert await wiring.schedule.take(1) != [], "a worker took it and died"
    async with draining(wiring):
        await until_something_is_due(wiring)
        await until(wiring, RunStatus.SUSPENDED)


async def test_worker_without_its_lease_cannot_write(wiring: Wiring) -> None:
    await start(wiring)
    run = await wiring.runs.read("run_x")
    first = await wiring.desk.lease(run.suspension_id, "dead", 1)
    assert first.record.lease is not None
    async with draining(wiring):
        await until_something_is_due(wiring)
        paused = await until(wiring, RunStatus.SUSPENDED)
    found = await wiring.desk.suspensions.read(run.suspension_id)
    assert found.record is not None
    assert (found.record.status, found.record.lease.attempt if found.record.lease else 0) == (Status.RESUMED, 2)
    assert paused.suspension_id == found.record.following_id


async def test_stopped_worker_releases_its_run(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = NeverAnswers()
    monkeypatch.setattr(resume, "_STOP_WITHIN_S", 0.01)
    monkeypatch.setitem(resume.agents, "slow", Agent(name="slow", instructions="x", tools=(), model=slow))
    async with draining(wiring):
        await start(wiring, agent="slow")
        await asyncio.wait_for(slow.asked.wait(), 20)
    assert await trail(wiring) == ["run_started", "run_resuming", "run_released"]
    assert await wiring.schedule.take(1) != [], "it is ready for the next worker"


async def test_late_result_of_the_worker_resolves_the_doubt(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, payer = make_slow_payer()
    monkeypatch.setitem(resume.agents, "payer", payer)
    first = await lease_shortly(wiring, "payer")
    fence = Fence("w1", 1, 1)
    frozen = asyncio.create_task(RESUMERS["runner"](wiring, resume.agents, LeasedRun(first, fence)))
    await asyncio.wait_for(begun.wait(), 20)
    async with draining(wiring, "w2"):
        await until_something_is_due(wiring)
        asked = await until(wiring, RunStatus.SUSPENDED)
        found = await wiring.desk.suspensions.read(asked.suspension_id)
        assert found.record is not None
        assert found.record.items[0].doubt is not None
        may_end.set()
        with pytest.raises(Conflict):
            await frozen
        ended = await until(wiring, RunStatus.COMPLETED)
    completed = [e for e in await wiring.runs.trail("run_x") if e.type == "tool_completed"]
    assert [(one.data["success"], one.data["output"]) for one in completed] == [(True, "paid A")]
    assert ended.result == {"text": "done"}


async def test_worker_frozen_beyond_its_lease_starts_nothing(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[str] = []

    @tool
    async def pay(order: str) -> str:
        """Pay for an order."""
        paid.append(order)
        return f"paid {order}"

    agent = Agent(name="payer", instructions="x", tools=(pay,), model=ScriptedModel([]))
    monkeypatch.setitem(resume.agents, "payer", agent)
    leased = await lease_shortly(wiring, "payer")
    fence = Fence("w1", 1, 1)
    call = PlannedCall(None, ToolCall(call_id="c", index=0, name="pay", args={"order": "A"}), idempotent=False)
    journal = DeskJournal(wiring, leased, fence)
    keys = await journal.redeem([call], (), None)
    assert (await run_calls(agent, "run_x", [call], keys, journal))[0].output == "paid A", "nobody else has it"
    await until_something_is_due(wiring)
    await wiring.desk.lease(leased.record.id, "w2", 30_000)
    with pytest.raises(Conflict):
        await run_calls(agent, "run_x", [call], keys, journal)
    assert paid == ["A"]


async def test_nobody_is_asked_if_a_live_worker_notes_the_end(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, payer = make_slow_payer()
    monkeypatch.setitem(resume.agents, "payer", payer)
    first = await lease_shortly(wiring, "payer")
    with keeping_notes(wiring.settings.home, "w1"), wiring.watch.on("run_x") as moved:
        away = asyncio.create_task(RESUMERS["runner"](wiring, resume.agents, LeasedRun(first, Fence("w1", 1, 1))))
        await asyncio.wait_for(begun.wait(), 20)
        listening = asyncio.create_task(wiring.watch.listen())
        async with draining(wiring, "w2"):
            await until_something_is_due(wiring)
            while (await trail(wiring)).count("run_resuming") < 2:
                await asyncio.wait_for(moved.wait(), 20)
                moved.clear()
            may_end.set()
            with pytest.raises(Conflict):
                await away
            await until(wiring, RunStatus.COMPLETED)
        listening.cancel()
    completed = [e for e in await wiring.runs.trail("run_x") if e.type == "tool_completed"]
    assert [(one.data["success"], one.data["output"]) for one in completed] == [(True, "paid A")]
    assert "run_paused" not in await trail(wiring)


async def test_run_with_a_frozen_tool_resumes_after_unfreeze(wiring: Wiring) -> None:
    freeze = await wiring.freezes.freeze("tool:look_up", "odd", person("root"))
    async with draining(wiring):
        await start(wiring)
        paused = await until(wiring, RunStatus.SUSPENDED)
        await decide(wiring, paused, action="approve")
        with wiring.watch.on("run_x") as moved:
            listening = asyncio.create_task(wiring.watch.listen())
            while "run_released" not in await trail(wiring):
                await asyncio.wait_for(moved.wait(), 20)
                moved.clear()
            listening.cancel()
        await wiring.freezes.unfreeze(freeze.id, person("root"))
        assert ran == [], "the batch has a call of the frozen tool"
        for _ in range(100_000):
            await clock.wake_unfrozen(wiring)
            await clock.process_due(wiring)
            if (await wiring.runs.read("run_x")).status.ended:
                break
    assert [order for order, _, _ in ran] == ["A"]
    assert (await wiring.runs.read("run_x")).status is RunStatus.COMPLETED
