"""AFK runs resume with the decisions of a worker."""

from typing import Any

import pytest

from sayso.adapters.afk.checkpoints import shift
from sayso.adapters.afk.hooks import Hooks
from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolResult as OurResult
from sayso.errors import Conflict, InvalidInput
from sayso.runner.protocol import Done, FrameworkTurn
from tests.frameworks.contracts import (
    AgentCircuitOpenError,
    FailSafeConfig,
    ToolDeferredHandle,
    ToolResult,
    tool,
)
from tests.frameworks.contracts.scripted import PayArgs, pay
from tests.sayso.adapters.afk.worker_setups import AgentSetup, decide, read_text, resume
from tests.sayso.runner.test_execution import Kept


async def test_begin_stops_before_any_call_of_the_turn() -> None:
    setup = AgentSetup(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await setup.begin()
    assert [(one.call_id, one.name) for one in asked.calls] == [("c0", "pay"), ("c1", "pay")]
    assert (asked.text, setup.pay_tool.paid) == ("Turn 0.", [])


async def test_resume_applies_the_decision_on_each_call() -> None:
    setup = AgentSetup(([pay("ann", 1), pay("bob", 2, "c1"), pay("cid", 3, "c2")],))
    asked = await setup.begin()
    reached = await resume(setup, asked, decide(asked, True, "Not Bob.", {"to": "cid", "amount": 9}))
    assert sorted(setup.pay_tool.paid) == [("ann", 1), ("cid", 9)]
    assert "Not Bob." in read_text(reached)


async def test_resume_refuses_calls_that_were_not_decided() -> None:
    """A state may hold other calls than the reviewed ones. Only decided calls run."""
    setup = AgentSetup(([pay("ann", 1), pay("eve", 1000, "c1")],))
    asked = await setup.begin()
    fewer = FrameworkTurn(asked.native, asked.calls[:1])
    await resume(setup, asked, decide(fewer, True))
    assert setup.pay_tool.paid == [("ann", 1)]
    renamed = FrameworkTurn(asked.native, (asked.calls[0].model_copy(update={"name": "look"}),))
    gate = decide(renamed, True)
    await resume(setup, asked, gate)
    assert setup.pay_tool.paid == [("ann", 1)]
    changed = decide(fewer, {"to": "bob", "amount": 2})
    setup.memory.rows.clear()
    await resume(setup, asked, changed)
    assert setup.pay_tool.paid == [("ann", 1), ("bob", 2)]


async def test_resume_stops_at_the_next_turn() -> None:
    setup = AgentSetup(([pay("ann", 1)], [pay("bob", 2)]))
    first = await setup.begin()
    second = await resume(setup, first, decide(first, True))
    assert isinstance(second, FrameworkTurn)
    assert (first.native["step"], second.native["step"], setup.pay_tool.paid) == (1, 2, [("ann", 1)])


async def test_resume_works_with_an_empty_store() -> None:
    setup = AgentSetup(([pay("ann", 1)],))
    asked = await setup.begin()
    setup.memory.rows.clear()
    await resume(setup, asked, decide(asked, True))
    assert setup.pay_tool.paid == [("ann", 1)]


async def test_resume_gives_the_same_decisions_when_repeated() -> None:
    """A call that ran keeps its result, and a denied one stays denied, regardless of AFK's later checkpoints."""
    setup = AgentSetup(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await setup.begin()
    first = await resume(setup, asked, decide(asked, True, "No."))
    result = OurResult(call_id="c0", tool_name="pay", success=True, output="paid 1 to ann")
    second = await resume(setup, asked, decide(asked, result, "No."))
    assert setup.pay_tool.paid == [("ann", 1)]
    assert read_text(first) == read_text(second)


async def test_resume_runs_calls_without_ids_once() -> None:
    setup = AgentSetup(([pay("ann", 1, None), pay("ann", 1, None)],))
    asked = await setup.begin()
    await resume(setup, asked, decide(asked, True, True))
    assert setup.pay_tool.paid == [("ann", 1), ("ann", 1)]


async def test_resume_stops_if_results_cannot_be_saved() -> None:
    setup = AgentSetup(([pay("ann", 1)],))
    asked = await setup.begin()
    with pytest.raises(Conflict):
        await resume(setup, asked, decide(asked, True, kept=Kept(refuse=True)))
    assert not [key for _, key in setup.memory.rows if "post_tool_batch" in key]


async def test_resume_excludes_waiting_from_run_time() -> None:
    setup = AgentSetup(([pay("ann", 1)],), options={"fail_safe": FailSafeConfig(max_wall_time_s=60)})
    asked = await setup.begin()
    saved: Any = asked.native["saved"]
    hours_ago = {**saved, "payload": {**saved["payload"], "started_at_s": saved["payload"]["started_at_s"] - 7200}}
    paused: Any = asked.native["suspended_at_ms"]
    native = {**asked.native, "saved": hours_ago, "suspended_at_ms": paused - 7_200_000}
    await resume(setup, FrameworkTurn(native, asked.calls), decide(asked, True))
    assert setup.pay_tool.paid == [("ann", 1)]


async def test_resume_includes_earlier_run_time() -> None:
    setup = AgentSetup(([pay("ann", 1)],), options={"fail_safe": FailSafeConfig(max_wall_time_s=60)})
    asked = await setup.begin()
    saved: Any = asked.native["saved"]
    late = {**saved, "payload": {**saved["payload"], "started_at_s": saved["payload"]["started_at_s"] - 7200}}
    ended = await resume(setup, FrameworkTurn({**asked.native, "saved": late}, asked.calls), decide(asked, True))
    assert isinstance(ended, Done)
    assert (ended.status, "max_wall_time_s" in str(ended.error), setup.pay_tool.paid) == (RunStatus.FAILED, True, [])


def test_shift_moves_tickets_by_the_time_waited() -> None:
    payload: Any = {"started_at_s": 10.0, "background_tools_pending": [{"ticket_id": "t", "created_at_s": 12.0}]}
    moved: Any = shift({"step": 1, "payload": payload}, 5.0)
    assert moved["payload"]["started_at_s"] == 15
    assert moved["payload"]["background_tools_pending"][0]["created_at_s"] == 17


async def test_background_tool_keeps_its_ticket_and_resolves_later() -> None:
    @tool(args_model=PayArgs, name="pay", description="Pay later.")
    async def later(args: PayArgs) -> ToolResult:
        return ToolResult(deferred=ToolDeferredHandle(ticket_id="t1", tool_name="pay", resume_hint="tomorrow"))

    setup = AgentSetup(([pay("ann", 1)], [pay("bob", 2)]), tools=[later])
    asked = await setup.begin()
    kept = Kept()
    second = await resume(setup, asked, decide(asked, True, kept=kept))
    assert isinstance(second, FrameworkTurn)
    result = kept.batches[0].calls[0].result
    assert result is not None
    where = {"thread_id": str(asked.native["thread_id"]), "run_id": str(asked.native["run_id"])}
    runner, _ = setup.build(Hooks(setup.memory))
    assert [one["ticket_id"] for one in await runner.list_background_tools(**where)] == ["t1"]
    setup.memory.rows.clear()
    again = await resume(setup, asked, decide(asked, result))  # a worker was lost: the call is not run again
    assert isinstance(again, FrameworkTurn)
    await runner.resolve_background_tool(**where, ticket_id="t1", output="paid after all")
    ended = await resume(setup, again, decide(again, "Not Bob."))
    assert "paid after all" in read_text(ended)


async def test_resume_raises_a_temporary_error() -> None:
    class TemporaryError(AgentCircuitOpenError):
        pass

    setup = AgentSetup(([pay("ann", 1)],))
    asked = await setup.begin()
    setup.turns = (setup.turns[0], TemporaryError("The circuit is open."))
    with pytest.raises(TemporaryError):
        await resume(setup, asked, decide(asked, True))


async def test_resume_refuses_an_invalid_state() -> None:
    asked = await AgentSetup(([pay("ann", 1)],)).begin()
    invalid: tuple[JsonObject, ...] = ({}, {**asked.native, "saved": {"step": 1}}, {**asked.native, "step": "one"})
    for native in invalid:
        with pytest.raises(InvalidInput, match="not a waiting AFK run"):
            await AgentSetup(()).framework.resume(native, decide(asked, True))
