"""Approved calls of a run of our own agents start in the commit of its lease, if its saved turn determines them."""

from sayso.core.clock import new_id
from sayso.core.records.freezes import Revocations
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import RunStatus
from sayso.core.transitions.execution import Fence
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.sayso.samples import person
from tests.workers.runs import decide, draining, ran, start, until
from workers.resume import driving as resume
from workers.resume.journals import ReadState, RunStates
from workers.resume.plans import FirstPlan, PlanInputs, RunPlan


async def bring(wiring: Wiring, **choice: object) -> Saved:
    """Return a run whose waiting call is decided: its turn also has an allowed and a denied call."""
    async with draining(wiring):
        await start(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
    decided = await decide(wiring, suspended, **choice)
    await wiring.schedule.take(1)
    return decided


async def read_state(wiring: Wiring, decided: Saved) -> ReadState:
    return await RunStates(wiring.runs).read(decided.record)


async def lease(wiring: Wiring, decided: Saved, state: ReadState | None) -> tuple[Saved, FirstPlan]:
    inputs = PlanInputs(resume.agents, wiring.rulebook.refresh(), Revocations(), state=state)
    first = FirstPlan(inputs)
    return await wiring.desk.lease(decided.record.id, "w1", 30_000, first.plan, None, new_id("step")), first


async def test_all_calls_of_the_turn_start_with_the_lease(wiring: Wiring) -> None:
    decided = await bring(wiring, action="approve", args={"order": "A", "amount": 2.5})
    leased, first = await lease(wiring, decided, await read_state(wiring, decided))
    plan = first.find(leased)
    assert isinstance(plan, RunPlan)
    assert [(one.tool, one.item_id) for one in leased.record.journal] == [("look_up", None), ("refund", "i1")]
    assert plan.answered.batch.calls[1].call.args == {"order": "A", "amount": 2.5}
    assert leased.record.items[0].permit is not None


async def test_nothing_starts_with_the_lease_without_the_state(wiring: Wiring) -> None:
    decided = await bring(wiring, action="approve")
    read = await read_state(wiring, decided)
    other = ReadState(seal_state(read.raw.replace(b'"order":"A"', b'"order":"B"')).ref, read.raw)
    for state in (None, other, ReadState(read.ref, b'{"format":"of a later version"}')):
        leased, first = await lease(wiring, decided, state)
        assert leased.record.journal == ()
        assert first.find(leased) is None
        assert leased.record.lease is not None
        decided = await release(wiring, leased)


async def release(wiring: Wiring, leased: Saved) -> Saved:
    held = leased.record.lease
    assert held is not None
    fence = Fence(held.holder, held.attempt, 30_000)
    released = await wiring.desk.release(leased.record.id, fence, "a test")
    await wiring.schedule.take(1)
    return released


async def test_denied_call_leaves_the_others_to_start_with_the_lease(wiring: Wiring) -> None:
    decided = await bring(wiring, action="deny")
    leased, _ = await lease(wiring, decided, await read_state(wiring, decided))
    assert [one.tool for one in leased.record.journal] == ["look_up"]


async def test_frozen_call_of_the_turn_keeps_the_others_from_the_lease(wiring: Wiring) -> None:
    decided = await bring(wiring, action="approve")
    await wiring.freezes.freeze("tool:look_up", "odd", person("root"))
    leased, _ = await lease(wiring, decided, await read_state(wiring, decided))
    assert leased.record.lease is not None
    assert leased.record.journal == ()
    assert leased.record.items[0].permit is None


async def test_changed_tool_is_asked_again_and_starts_nothing(wiring: Wiring) -> None:
    decided = await bring(wiring, action="approve")
    state = await read_state(wiring, decided)
    item = decided.record.items[0]
    changed = item.model_copy(update={"tool": item.tool.model_copy(update={"definition": "another"})})
    record = decided.record.model_copy(update={"items": (changed,)})
    first = FirstPlan(PlanInputs(resume.agents, wiring.rulebook.refresh(), Revocations(), state=state))
    assert first.plan(record, Fence("w1", 1, 30_000), decided.now_ms) == ()


async def test_worker_that_suspended_a_run_resumes_it_in_two_commits(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        decided = await decide(wiring, suspended, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    last = await wiring.desk.suspensions.read(decided.record.id)
    assert [order for order, _, _ in ran] == ["A"]
    assert last.record.version == decided.record.version + 2, "lease with permits, results with the end"
    trail = await wiring.runs.trail(last.record.run.id)
    completed = [one.data["tool_name"] for one in trail if one.type == "tool_completed"]
    assert completed == ["look_up", "refund", "drop"]
