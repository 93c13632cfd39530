"""Tests of settling AFK's background tickets."""

from typing import Any

import pytest

from sayso.adapters.afk.desk import settle_tickets
from tests.frameworks.contracts import (
    Runner,
)
from tests.frameworks.contracts.scripted import pay
from tests.sayso.adapters.afk.desk_setups import DeskSetup, office


async def background(setup: DeskSetup) -> tuple[Runner, str]:
    setup.options = {"background": {"pay"}}
    runner, agent = setup.open()
    result = await runner.run(agent, user_message="Pay them.", thread_id="thread")
    assert '"deferred": true' in result.final_text
    return runner, result.run_id


async def test_settle_tickets_runs_an_approved_background_call() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    runner, run_id = await background(setup)
    assert await settle_tickets(setup.desk, runner, thread_id="thread", run_id=run_id) == 1
    assert setup.pay_tool.paid == []
    setup.office.reviewer.decide("approve", args={"to": "ann", "amount": 6})
    assert await settle_tickets(setup.desk, runner, thread_id="thread", run_id=run_id) == 0
    (row,) = await runner.list_background_tools(thread_id="thread", run_id=run_id, include_resolved=True)
    assert (row["status"], row["output"], setup.pay_tool.paid) == ("completed", "paid 6 to ann", [("ann", 6)])


async def test_settle_tickets_fails_a_denied_ticket_with_the_reason() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    runner, run_id = await background(setup)
    setup.office.reviewer.decide("deny", message="Ann has left.")
    await settle_tickets(setup.desk, runner, thread_id="thread", run_id=run_id)
    (row,) = await runner.list_background_tools(thread_id="thread", run_id=run_id, include_resolved=True)
    assert row["status"] == "failed"
    assert "Ann has left." in row["error"]


async def test_settle_tickets_in_another_process_does_not_rerun_a_call() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    runner, run_id = await background(setup)
    setup.office.reviewer.decide("approve")

    class Lost(Runner):
        async def resolve_background_tool(self, **_given: Any) -> None:
            raise OSError("The process was lost just now.")

    with pytest.raises(OSError, match="lost"):
        await settle_tickets(setup.desk, Lost(memory_store=setup.memory), thread_id="thread", run_id=run_id)
    runner, _ = setup.open()
    assert await settle_tickets(setup.desk, runner, thread_id="thread", run_id=run_id) == 0
    assert setup.pay_tool.paid == [("ann", 7)]
