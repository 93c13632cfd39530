"""A worker drives ready runs to their next suspension or their end, with a real store."""

import asyncio

import pytest

from sayso.core.records.suspensions import RunStatus, Status
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.execution import Fence
from sayso.errors import Conflict
from sayso.runner.agents import Agent
from sayso.runner.batches import PlannedCall
from sayso.runner.execution import run_calls
from sayso.runner.models import ScriptedModel
from sayso.runner.tools import tool
from service.core.wiring import Wiring
from service.features.insights.totals import TotalsStore
from tests.sayso.samples import person
from tests.workers.runs import (
    HangingModel,
    await_event,
    decide,
    draining,
    lease_shortly,
    make_slow_payer,
    process_until_due,
    ran,
    start,
    trail,
    until,
)
from workers.clock import ticks as clock
from workers.resume import driving as resume
from workers.resume.journals import DeskJournal
from workers.resume.notes import keeping_notes
from workers.resume.plans import LeasedRun
from workers.resume.resumers import RESUMERS


async def test_run_suspends_and_ends_as_decided(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        assert ran == []
        await decide(wiring, suspended, action="approve", args={"order": "A", "amount": 2.5})
        ended = await until(wiring, RunStatus.COMPLETED)
    assert ran == [("A", 2.5, f"{suspended.suspension_id}:i1")]
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
        await await_event(wiring, "run_postponed")
    run = await wiring.runs.read("run_x")
    found = await wiring.desk.suspensions.read(run.suspension_id)
    assert found.record is not None
    assert "no agent named 'nobody'" in str(found.record.receipt.error)


async def test_lost_id_is_requeued_by_the_clock(wiring: Wiring) -> None:
    await start(wiring)
    assert await wiring.schedule.take(1) != [], "the entry was not taken"
    async with draining(wiring):
        await process_until_due(wiring)
        await until(wiring, RunStatus.SUSPENDED)


async def test_worker_without_its_lease_cannot_write(wiring: Wiring) -> None:
    await start(wiring)
    run = await wiring.runs.read("run_x")
    first = await wiring.desk.lease(run.suspension_id, "dead", 1)
    assert first.record.lease is not None
    async with draining(wiring):
        await process_until_due(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
    found = await wiring.desk.suspensions.read(run.suspension_id)
    assert found.record is not None
    assert (found.record.status, found.record.lease.attempt if found.record.lease else 0) == (Status.RESUMED, 2)
    assert suspended.suspension_id == found.record.following_id


async def test_stopped_worker_releases_its_run(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = HangingModel()
    monkeypatch.setattr(resume, "_STOP_WITHIN_S", 0.01)
    monkeypatch.setitem(resume.agents, "slow", Agent(name="slow", instructions="x", tools=(), model=slow))
    async with draining(wiring):
        await start(wiring, agent="slow")
        await asyncio.wait_for(slow.asked.wait(), 20)
    assert await trail(wiring) == ["run_started", "run_resuming", "run_released"]
    assert await wiring.schedule.take(1) != [], "the run is not ready"


async def test_late_result_of_the_worker_resolves_the_doubt(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    started, may_end, payer = make_slow_payer()
    monkeypatch.setitem(resume.agents, "payer", payer)
    first = await lease_shortly(wiring, "payer")
    fence = Fence("w1", 1, 1)
    frozen = asyncio.create_task(RESUMERS["runner"](wiring, resume.agents, LeasedRun(first, fence)))
    await asyncio.wait_for(started.wait(), 20)
    async with draining(wiring, "w2"):
        await process_until_due(wiring)
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
    journal = DeskJournal(wiring, leased, fence, set())
    keys = await journal.redeem([call], (), None)
    assert (await run_calls(agent, "run_x", [call], keys, journal))[0].output == "paid A", "the lease is still current"
    await process_until_due(wiring)
    await wiring.desk.lease(leased.record.id, "w2", 30_000)
    with pytest.raises(Conflict):
        await run_calls(agent, "run_x", [call], keys, journal)
    assert paid == ["A"]


async def test_nobody_is_asked_if_a_live_worker_saves_the_result(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, may_end, payer = make_slow_payer()
    monkeypatch.setitem(resume.agents, "payer", payer)
    first = await lease_shortly(wiring, "payer")
    with keeping_notes(wiring.settings.home, "w1"):
        away = asyncio.create_task(RESUMERS["runner"](wiring, resume.agents, LeasedRun(first, Fence("w1", 1, 1))))
        await asyncio.wait_for(started.wait(), 20)
        async with draining(wiring, "w2"):
            await process_until_due(wiring)
            await await_event(wiring, "run_resuming", 2)
            may_end.set()
            with pytest.raises(Conflict):
                await away
            await until(wiring, RunStatus.COMPLETED)
    completed = [e for e in await wiring.runs.trail("run_x") if e.type == "tool_completed"]
    assert [(one.data["success"], one.data["output"]) for one in completed] == [(True, "paid A")]
    assert "run_paused" not in await trail(wiring)
    totals = await wiring.part(TotalsStore).read()
    assert [{source: counted.total for source, counted in by.items()} for by in (totals.calls, totals.batches)] == [
        {"execute": 0, "replay": 1}
    ] * 2


async def test_run_with_a_frozen_tool_resumes_after_unfreeze(wiring: Wiring) -> None:
    freeze = await wiring.freezes.freeze("tool:look_up", "odd", person("root"))
    async with draining(wiring):
        await start(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        await decide(wiring, suspended, action="approve")
        await await_event(wiring, "run_released")
        await wiring.freezes.unfreeze(freeze.id, person("root"))
        assert ran == [], "the batch has a call of the frozen tool"
        for _ in range(100_000):
            await clock.wake_unfrozen(wiring)
            await clock.process_due(wiring)
            if (await wiring.runs.read("run_x")).status.ended:
                break
    assert [order for order, _, _ in ran] == ["A"]
    assert (await wiring.runs.read("run_x")).status is RunStatus.COMPLETED
