"""A call's result is saved at once, while slower calls of its batch run."""

import asyncio
from collections.abc import Mapping

import pytest

from sayso.core.records.tools import ToolResult
from sayso.errors import StaleAttempt
from sayso.runner.agents import Agent
from sayso.runner.local import MemoryJournal
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.tools import Tool, tool
from sayso.runner.transcripts import RunState, start_state
from tests.sayso.rule_builders import policy
from tests.sayso.runners import LostWorker, RemoteModel, fields_of, reload, turn

START = start_state("run_1", "support", "go")
CALLS = turn(("quick", {}), ("slow", {}))


class Noting(LostWorker):
    """A journal that releases the slow call after saving the quick one, and then loses its worker."""

    def __init__(self, may_end: asyncio.Event) -> None:
        super().__init__("run_1")
        self.started: list[str] = []
        self.ended: list[str] = []
        self._may_end = may_end

    def note_start(self, key: str) -> None:
        self.started.append(key)

    def note_end(self, key: str, result: ToolResult) -> None:
        self.ended.append(key)

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        await super().note_results(results)
        self._may_end.set()


def build(may_end: asyncio.Event, ran: list[str]) -> Agent:
    @tool
    def quick() -> str:
        """End at once."""
        ran.append("quick")
        return "quick done"

    @tool
    async def slow() -> str:
        """End when it may."""
        ran.append("slow")
        await may_end.wait()
        return "slow done"

    tools: tuple[Tool, ...] = (quick, slow)
    return Agent(name="support", instructions="x", tools=tools, model=RemoteModel([CALLS, turn(text="done")]))


async def test_quick_result_is_saved_while_a_slow_call_runs() -> None:
    may_end, ran = asyncio.Event(), list[str]()
    agent, lost = build(may_end, ran), Noting(may_end)
    with pytest.raises(StaleAttempt):
        await asyncio.wait_for(drive(ModelRun(agent, START), policy=policy(), journal=lost), 30)
    assert [*lost.results] == [0]
    assert (sorted(lost.started), sorted(lost.ended)) == (["run_1:0.0", "run_1:0.1"], ["run_1:0.0", "run_1:0.1"])
    assert lost.state is not None
    again = MemoryJournal[RunState]("run_1")
    again.begun, again.results = lost.begun, lost.results
    asked = await drive(ModelRun(agent, reload(lost.state)), policy=policy(), journal=again)
    assert isinstance(asked, RunSuspended)
    assert [ask.tool.name for ask in asked.drafts] == ["slow"]
    assert ran.count("quick") == 1


async def test_drive_reports_a_batch_that_ended_before_its_worker_was_lost() -> None:
    may_end, ran = asyncio.Event(), list[str]()
    agent, lost = build(may_end, ran), Noting(may_end)
    with pytest.raises(StaleAttempt):
        await asyncio.wait_for(drive(ModelRun(agent, START), policy=policy(), journal=lost), 30)
    assert lost.state is not None
    again = MemoryJournal[RunState]("run_1")
    late = ToolResult(call_id="call_1", tool_name="slow", success=True, output="late")
    again.begun, again.results = lost.begun, {**lost.results, 1: late}
    end = await drive(ModelRun(agent, reload(lost.state)), policy=policy(), journal=again)
    assert isinstance(end, RunEnded)
    events = [*again.events, *end.events]
    assert fields_of(events, "tool_completed", "tool_name", "output") == [("quick", "quick done"), ("slow", "late")]
    assert sorted(ran) == ["quick", "slow"]


async def test_calls_that_end_together_are_saved_once_with_their_batch() -> None:
    may_end, ran = asyncio.Event(), list[str]()
    may_end.set()
    journal = MemoryJournal[RunState]("run_1")
    end = await drive(ModelRun(build(may_end, ran), START), policy=policy(), journal=journal)
    assert isinstance(end, RunEnded)
    assert journal.results == {}
