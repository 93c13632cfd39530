"""A reviewer requests changes: the run goes on, and its next call of the tool is a new version that runs once."""

import pytest

from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import RunRef, RunStatus
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, ScriptedModel
from sayso.runner.transcripts import start_state
from service.core.wiring import Wiring
from tests.workers.runs import await_event, decide, draining, ran, refund, turn, until
from workers.resume import driving as resume

TURNS = [
    turn(("refund", '{"order": "A", "amount": 5.0}')),
    turn(("refund", '{"order": "A", "amount": 2.0}')),
    ModelTurn(text="done"),
]


@pytest.mark.parametrize("on_deny", ["continue", "degrade", "fail"])
async def test_requested_changes_lead_to_a_new_version(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch, on_deny: str
) -> None:
    payer = Agent(name="payer", instructions="x", tools=(refund,), model=ScriptedModel(TURNS))
    monkeypatch.setitem(resume.agents, "payer", payer)
    state = seal_state(start_state("run_x", "payer", "refund order A").model_dump_json().encode())
    async with draining(wiring):
        await wiring.desk.start(RunRef(id="run_x", agent="payer", owner="bot", thread_id="t"), state, on_deny=on_deny)
        first = await until(wiring, RunStatus.SUSPENDED)
        changes = {"paths": ("args.amount",)}
        await decide(wiring, first, action="deny", message="At most 2.", changes=changes)
        await await_event(wiring, "run_paused", 2)
        second = await until(wiring, RunStatus.SUSPENDED)
        item = (await wiring.desk.suspensions.read(second.suspension_id)).record.items[0]
        assert item.revises is not None
        assert (item.revises.suspension_id, item.revises.round) == (first.suspension_id, 1)
        assert ran == []
        await decide(wiring, second, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert ran == [("A", 2.0, f"{second.suspension_id}:i1")]
    results = [entry.data for entry in await wiring.runs.trail("run_x") if entry.type == "tool_completed"]
    assert results[0]["error"] == "Changes requested (1 of 3): At most 2. Change args.amount, and call refund again."
