"""Tests of settling AFK's background tickets."""

from typing import Any

import pytest

from sayso.adapters.afk.tickets import settle_tickets
from tests.frameworks.contracts import (
    Runner,
)
from tests.frameworks.contracts.players import pay
from tests.sayso.adapters.afk_scenes import Scene, office


async def background(scene: Scene) -> tuple[Runner, str]:
    scene.options = {"background": {"pay"}}
    runner, agent = scene.open()
    result = await runner.run(agent, user_message="Pay them.", thread_id="thread")
    assert '"deferred": true' in result.final_text
    return runner, result.run_id


async def test_settle_tickets_runs_an_approved_background_call() -> None:
    scene = Scene(([pay("ann", 7)],), office())
    runner, run_id = await background(scene)
    assert await settle_tickets(scene.desk, runner, thread_id="thread", run_id=run_id) == 1
    assert scene.purse.paid == []
    scene.office.reviewer.decide("approve", args={"to": "ann", "amount": 6})
    assert await settle_tickets(scene.desk, runner, thread_id="thread", run_id=run_id) == 0
    (row,) = await runner.list_background_tools(thread_id="thread", run_id=run_id, include_resolved=True)
    assert (row["status"], row["output"], scene.purse.paid) == ("completed", "paid 6 to ann", [("ann", 6)])


async def test_settle_tickets_fails_a_denied_ticket_with_the_reason() -> None:
    scene = Scene(([pay("ann", 7)],), office())
    runner, run_id = await background(scene)
    scene.office.reviewer.decide("deny", message="Ann has left.")
    await settle_tickets(scene.desk, runner, thread_id="thread", run_id=run_id)
    (row,) = await runner.list_background_tools(thread_id="thread", run_id=run_id, include_resolved=True)
    assert row["status"] == "failed"
    assert "Ann has left." in row["error"]


async def test_settle_tickets_in_another_process_does_not_rerun_a_call() -> None:
    scene = Scene(([pay("ann", 7)],), office())
    runner, run_id = await background(scene)
    scene.office.reviewer.decide("approve")

    class Lost(Runner):
        async def resolve_background_tool(self, **_given: Any) -> None:
            raise OSError("The process was lost just now.")

    with pytest.raises(OSError, match="lost"):
        await settle_tickets(scene.desk, Lost(memory_store=scene.memory), thread_id="thread", run_id=run_id)
    runner, _ = scene.open()
    assert await settle_tickets(scene.desk, runner, thread_id="thread", run_id=run_id) == 0
    assert scene.purse.paid == [("ann", 7)]
