"""A run resumes in another process, and after its worker was lost at any step."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from sayso.core.records.decisions import DecisionAction
from sayso.core.records.events import Event
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolDefinition
from sayso.errors import StaleAttempt
from sayso.runner.agents import Agent
from sayso.runner.batches import Resumption
from sayso.runner.fallbacks import resolve
from sayso.runner.local import MemoryJournal
from sayso.runner.loop import drive
from sayso.runner.models import ChatMessage, ModelTurn, ScriptedModel
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState, start_state
from tests.sayso.resuming import CALLS, answer_all
from tests.sayso.runners import (
    DONE,
    POLICY,
    Ledger,
    LostWorker,
    Ran,
    approve,
    deny,
    fields_of,
    kinds,
    make_agent,
    reload,
    turn,
)
from tests.sayso.samples import T0, person

START = start_state("run_1", "support", "Refund A-1")
LOOK, REFUND, DROP = ("look", {"order": "A"}), ("refund", {"order": "A", "amount": 5}), ("drop", {"order": "A"})


def drive_elsewhere(state: RunState) -> RunState:
    """Hand the state to another process and return the one it comes to."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sayso.resuming"],
        input=state.model_dump_json().encode(),
        capture_output=True,
        cwd=Path(__file__).resolve().parents[3],
        check=True,
    )
    return RunState.model_validate_json(done.stdout)


async def test_suspended_run_resumes_in_another_process() -> None:
    pause = await drive(ModelRun(make_agent([], turn(*CALLS)), START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    drafts = [ItemDraft.model_validate_json(ask.model_dump_json()) for ask in pause.drafts]
    assert tuple(drafts) == pause.drafts
    there = drive_elsewhere(pause.state)
    here = await drive(
        ModelRun(make_agent([], turn(*CALLS)), pause.state),
        policy=POLICY,
        journal=Ledger("run_1"),
        outcomes=answer_all(pause.state),
    )
    assert [(one.success, one.output, one.error) for one in there.executions] == [
        (one.success, one.output, one.error) for one in here.state.executions
    ]
    assert there.messages == here.state.messages
    assert there.batch is None


async def test_planned_calls_are_journaled_with_events_before_they_run() -> None:
    journal = Ledger("run_1")
    await drive(ModelRun(make_agent([], turn(LOOK, DROP)), START), policy=POLICY, journal=journal)
    begun = ["llm_completed", "tool_batch_started", "policy_decision", "policy_decision"]
    ended = ["tool_completed", "tool_completed", "tool_batch_completed"]
    assert journal.steps == [("redeem", begun, True), ("checkpoint", ended, True)]


async def test_results_are_saved_with_the_end_that_the_model_gives_at_once() -> None:
    journal, model = Ledger("run_1"), ScriptedModel([turn(LOOK), DONE])
    end = await drive(ModelRun(make_agent([], model=model), START), policy=POLICY, journal=journal)
    assert isinstance(end, RunEnded)
    assert [step for step, _, _ in journal.steps] == ["redeem"]
    assert kinds(end.events) == ["tool_completed", "tool_batch_completed", "llm_completed"]


async def test_results_are_saved_before_the_calls_that_the_model_asks_for_at_once() -> None:
    journal, model = Ledger("run_1"), ScriptedModel([turn(LOOK), turn(LOOK), DONE])
    await drive(ModelRun(make_agent([], model=model), START), policy=POLICY, journal=journal)
    assert [step for step, _, _ in journal.steps] == ["redeem", "checkpoint", "redeem"]
    assert journal.state is not None
    assert len(journal.state.executions) == 1


async def test_results_are_saved_while_the_model_works_on_them() -> None:
    saved = asyncio.Event()

    class Saving(Ledger):
        async def checkpoint(self, state: RunState, events: Sequence[Event]) -> None:
            await super().checkpoint(state, events)
            saved.set()

    class Waiting(ScriptedModel):
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            if messages[-1]["role"] == "tool":
                await saved.wait()
            return await super().complete(messages, tools)

    agent = make_agent([], model=Waiting([turn(LOOK), DONE]))
    end = await drive(ModelRun(agent, START), policy=POLICY, journal=Saving("run_1"))
    assert isinstance(end, RunEnded)
    assert end.status is RunStatus.COMPLETED


async def test_model_is_not_awaited_once_its_results_cannot_be_saved() -> None:
    broken_off: list[bool] = []

    class Endless(ScriptedModel):
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            if messages[-1]["role"] != "tool":
                return await super().complete(messages, tools)
            try:
                return await asyncio.Future()
            finally:
                broken_off.append(True)

    agent = make_agent([], model=Endless([turn(LOOK)]))
    with pytest.raises(StaleAttempt):
        await drive(ModelRun(agent, START), policy=POLICY, journal=LostWorker("run_1"))
    await asyncio.sleep(0)
    assert broken_off == [True]


async def test_results_are_saved_before_an_error_of_the_model_is_raised() -> None:
    class Broken(ScriptedModel):
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            if messages[-1]["role"] == "tool":
                raise KeyError("no answer")
            return await super().complete(messages, tools)

    journal = Ledger("run_1")
    with pytest.raises(KeyError):
        await drive(ModelRun(make_agent([], model=Broken([turn(LOOK)])), START), policy=POLICY, journal=journal)
    assert [step for step, _, _ in journal.steps] == ["redeem", "checkpoint"]


async def test_resumed_batch_redeems_its_permits_without_saving_state() -> None:
    agent = make_agent([], turn(LOOK, REFUND))
    pause = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    approved = approve(pause.drafts[0])
    spent: list[tuple[str | None, bool]] = []

    class Noting(Ledger):
        async def redeem(self, calls, events, state):  # type: ignore[no-untyped-def]
            spent.extend((planned.item_id, planned.idempotent) for planned in calls)
            return await super().redeem(calls, events, state)

    journal = Noting("run_1")
    outcomes = {1: Resumption("i1", approved.outcome, approved.args)}
    await drive(ModelRun(agent, reload(pause.state)), policy=POLICY, journal=journal, outcomes=outcomes)
    assert spent == [(None, True), ("i1", False)]
    assert journal.steps[0] == ("redeem", [], False)


async def test_batch_without_calls_to_run_is_saved_in_one_step() -> None:
    journal = Ledger("run_1")
    await drive(ModelRun(make_agent([], turn(DROP)), START), policy=POLICY, journal=journal)
    assert [step for step, _, _ in journal.steps] == ["checkpoint"]


async def lose_worker(agent_ran: Ran, *calls: tuple[str, Any]) -> LostWorker:
    journal = LostWorker("run_1")
    with pytest.raises(StaleAttempt):
        await drive(ModelRun(make_agent(agent_ran, turn(*calls)), START), policy=POLICY, journal=journal)
    return journal


async def take_up(
    journal: MemoryJournal[RunState], ran: Ran, *calls: tuple[str, Any]
) -> tuple[RunEnded[RunState], Ledger]:
    assert journal.state is not None
    again = Ledger("run_1")
    again.begun = journal.begun
    end = await drive(ModelRun(make_agent(ran, turn(*calls)), reload(journal.state)), policy=POLICY, journal=again)
    assert isinstance(end, RunEnded)
    return end, again


async def test_idempotent_call_of_a_lost_worker_reruns_with_its_key() -> None:
    ran: Ran = []
    end, again = await take_up(await lose_worker(ran, LOOK, DROP), ran, LOOK, DROP)
    first, second = (call for _, _, call in ran)
    assert (first.idempotency_key, first.attempt) == (second.idempotency_key, 1)
    assert second.attempt == 2
    assert end.status is RunStatus.COMPLETED
    assert kinds(again.events)[:3] == ["tool_completed", "tool_completed", "tool_batch_completed"]
    assert again.steps[0] == ("redeem", [], True)


CRASH = ("crash", {"order": "A"})


async def doubt(ran: Ran, *calls: tuple[str, Any]) -> tuple[Agent, RunSuspended[RunState], Ledger]:
    """Lose the worker in the middle of `calls`, and return the question that the next one asks."""
    lost = await lose_worker(ran, *calls)
    assert lost.state is not None
    agent, again = make_agent(ran, turn(*calls)), Ledger("run_1")
    again.begun = lost.begun
    pause = await drive(ModelRun(agent, reload(lost.state)), policy=POLICY, journal=again)
    assert isinstance(pause, RunSuspended)
    return agent, pause, again


async def settle(agent: Agent, pause: RunSuspended[RunState], value: JsonValue) -> tuple[RunEnded[RunState], Ledger]:
    """Answer the question and drive on."""
    (ask,) = pause.drafts
    answered = resolve(ask, DecisionAction.VALUE, by=person("ada"), at_ms=T0, value=value)
    outcomes = {ask.index: Resumption("i1", answered.outcome, answered.args)}
    journal = Ledger("run_1")
    end = await drive(ModelRun(agent, reload(pause.state)), policy=POLICY, journal=journal, outcomes=outcomes)
    assert isinstance(end, RunEnded)
    return end, journal


async def test_other_call_of_a_lost_worker_is_in_doubt() -> None:
    ran: Ran = []
    _, pause, again = await doubt(ran, LOOK, CRASH)
    assert sorted(name for name, _, _ in ran) == ["crash", "look", "look"], "only the idempotent call runs again"
    (ask,) = pause.drafts
    assert (ask.tool.name, ask.allowed, ask.terms.fallback.action) == ("crash", ("value",), "fail")
    assert ask.prompt.body is not None
    assert "this process (attempt 1)" in ask.prompt.body
    assert "run_1:0.1" in ask.prompt.body, "the key to look it up by"
    assert [step for step, _, _ in again.steps] == ["redeem"]


@pytest.mark.parametrize(
    ("value", "crashes", "error"),
    [
        ({"choice": "run_again"}, 2, "RuntimeError: no A"),
        ({"choice": "skip"}, 1, "Skipped by ada: the call may already have run, and its result is not known."),
        ({"choice": "skip", "result": "it had run"}, 1, None),
    ],
)
async def test_choice_on_a_call_in_doubt_is_applied(value: JsonValue, crashes: int, error: str | None) -> None:
    ran: Ran = []
    agent, pause, _ = await doubt(ran, LOOK, CRASH)
    end, journal = await settle(agent, pause, value)
    assert [name for name, _, _ in ran].count("crash") == crashes
    assert end.status is RunStatus.COMPLETED
    assert fields_of(journal.events, "tool_completed", "index", "error") == [(0, None), (1, error)]


async def test_call_rerun_after_doubt_keeps_its_key() -> None:
    ran: Ran = []
    agent, pause, _ = await doubt(ran, CRASH)
    await settle(agent, pause, {"choice": "run_again"})
    first, second = (call.idempotency_key for name, _, call in ran if name == "crash")
    assert first == second


@pytest.mark.parametrize("value", [{"choice": "fail"}, {"choice": "maybe"}, None, "run_again"])
async def test_unresolved_doubt_fails_the_run(value: JsonValue) -> None:
    ran: Ran = []
    agent, pause, _ = await doubt(ran, CRASH)
    end, _ = await settle(agent, pause, value)
    assert end.status is RunStatus.FAILED
    assert [name for name, _, _ in ran] == ["crash"]


async def test_approved_call_of_a_lost_worker_is_in_doubt() -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(REFUND))
    pause = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    lost, outcomes = LostWorker("run_1"), {0: approve(pause.drafts[0])}
    with pytest.raises(StaleAttempt):
        await drive(ModelRun(agent, reload(pause.state)), policy=POLICY, journal=lost, outcomes=outcomes)
    again = Ledger("run_1")
    again.begun = lost.begun
    asked = await drive(ModelRun(agent, reload(pause.state)), policy=POLICY, journal=again, outcomes=outcomes)
    assert isinstance(asked, RunSuspended)
    assert len(ran) == 1
    assert asked.drafts[0].doubt is not None


async def test_headless_run_with_a_call_in_doubt_fails() -> None:
    ran: Ran = []
    lost = await lose_worker(ran, CRASH)
    assert lost.state is not None
    again = Ledger("run_1")
    again.begun = lost.begun
    agent = make_agent(ran, turn(CRASH), interaction="headless")
    end = await drive(ModelRun(agent, reload(lost.state)), policy=POLICY, journal=again)
    assert isinstance(end, RunEnded)
    unknown = "crash may already have run before its worker was lost; nobody knows its result."
    assert (end.status, end.error, len(ran)) == (RunStatus.FAILED, unknown, 1)


async def test_later_batch_ignores_outcomes_of_an_earlier_one() -> None:
    """The outcomes of a pause stay with its worker, which drives on to batches with the same indexes."""
    ran: Ran = []
    agent = make_agent(ran, turn(REFUND), turn(LOOK), turn(REFUND))
    pause = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    for reply, runs in ((deny, ["look"]), (approve, ["refund", "look"])):
        ran.clear()
        outcomes = {0: reply(pause.drafts[0])}
        second = await drive(
            ModelRun(agent, reload(pause.state)), policy=POLICY, journal=Ledger("run_1"), outcomes=outcomes
        )
        assert isinstance(second, RunSuspended), "the second refund is asked about anew"
        assert [name for name, _, _ in ran] == runs


async def test_elapsed_time_is_saved_with_every_step() -> None:
    journal = Ledger("run_1")
    await drive(ModelRun(make_agent([], turn(LOOK)), START), policy=POLICY, journal=journal)
    assert journal.state is not None
    assert journal.state.spent_ms > 0
