"""Denials, budgets and faults end calls and runs, and the model receives the reason."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sayso.core.records.events import TrailHead
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.terms import Fallback, FallbackAction
from sayso.core.records.tools import ToolDefinition
from sayso.errors import ModelError
from sayso.runner.agents import Agent, Budgets
from sayso.runner.batches import Resumption
from sayso.runner.loop import drive
from sayso.runner.models import ChatMessage, ModelTurn
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.tools import CallContext, tool
from sayso.runner.transcripts import RunState
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import (
    DONE,
    POLICY,
    Ledger,
    Ran,
    approve,
    deny,
    fail,
    fields_of,
    give,
    kinds,
    make_agent,
    reload,
    turn,
)
from tests.sayso.walks import CALLS, START
from tests.trails import append_events


async def resume(
    pause: RunSuspended[RunState], agent: Agent, outcomes: dict[int, Resumption], rules: Any = POLICY
) -> tuple[RunEnded[RunState], Ledger]:
    journal = Ledger("run_1")
    end = await drive(ModelRun(agent, reload(pause.state)), policy=rules, journal=journal, outcomes=outcomes)
    assert isinstance(end, RunEnded)
    return end, journal


async def answer(call: str, reply: Callable[[ItemDraft], Resumption], rules: Any = POLICY, **changes: Any) -> Any:
    """Ask about one call, answer it, and return what ran, what its result was, and how the run ended."""
    ran: Ran = []
    agent = make_agent(ran, turn(CALLS[call]), **changes)
    pause = await drive(ModelRun(agent, START), policy=rules, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    end, journal = await resume(pause, agent, {0: reply(pause.drafts[0])}, rules)
    (error,) = fields_of([*journal.events, *end.events], "tool_completed", "error")
    return [args for _, args, _ in ran], error, end


async def test_denial_has_the_reviewers_message_or_the_default() -> None:
    assert (await answer("approve", lambda ask: deny(ask, "too much")))[1] == "too much"
    assert (await answer("approve", deny))[1] == "Denied by reviewer"


async def test_denial_by_a_rule_has_its_reason() -> None:
    for reason, words in ((None, "Denied by policy"), ("never drop", "Denied by policy: never drop")):
        journal = Ledger("run_1")
        rules = policy(rule("drops", tool_name="drop", reason=reason))
        await drive(ModelRun(make_agent([], turn(CALLS["deny"])), START), policy=rules, journal=journal)
        assert fields_of(journal.events, "tool_completed", "error") == [words]


async def test_run_ended_by_a_denial_has_the_error() -> None:
    _, _, degraded = await answer("approve", deny, approval_denial_policy="degrade")
    assert degraded.error == "refund was denied, and the agent's approval_denial_policy is degrade."
    assert degraded.result["reason"] == degraded.error
    assert (degraded.result["completed"], degraded.result["missing"]) == ([], ["refund"])
    _, _, failed = await answer("approve", deny, approval_denial_policy="fail")
    assert (failed.status, failed.result) == (RunStatus.FAILED, None)
    assert failed.error == "refund was denied, and the agent's approval_denial_policy is fail."


async def test_failed_outcome_ends_the_run_and_reports_every_call() -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(CALLS["allow"], CALLS["approve"]))
    pause = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    end, journal = await resume(pause, agent, {1: fail(pause.drafts[0])})
    assert (end.status, end.error, ran) == (RunStatus.FAILED, "refund: Nobody answered.", [])
    assert journal.steps == []
    assert fields_of(end.events, "tool_completed", "error") == ["Skipped: refund: Nobody answered.", "Nobody answered."]


async def test_item_without_an_outcome_is_denied() -> None:
    agent = make_agent([], turn(CALLS["approve"]))
    pause = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    _, journal = await resume(pause, agent, {})
    assert fields_of(journal.events, "tool_completed", "success", "error") == [
        (False, "Denied: no decision came for this call.")
    ]


async def test_edited_arguments_are_checked_against_tool_and_rules() -> None:
    ran, error, end = await answer("edit", lambda ask: approve(ask, amount=-1))
    assert (ran, end.status) == ([], RunStatus.COMPLETED)
    assert error.startswith("The arguments do not fit refund: amount")
    ran, error, _ = await answer("value", lambda ask: give(ask, "12345"))
    assert ran == []
    assert error.startswith("The arguments do not fit pay: code")
    capped = policy(*POLICY.rules, rule("cap", tool_name="refund", when="args.amount > 100", priority=900))
    ran, error, end = await answer(
        "edit", lambda ask: approve(ask, amount=101), capped, approval_denial_policy="degrade"
    )
    assert (ran, error, end.status) == ([], "Denied by policy", RunStatus.DEGRADED)


async def test_tool_changed_or_removed_while_waiting_does_not_run() -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(CALLS["approve"], CALLS["allow"]))
    pause = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)

    @tool(name="refund")
    def changed(order: str, amount: float) -> None:
        """Refund an order twice."""
        ran.append(("refund", {}, CallContext("", "", "")))

    _, journal = await resume(pause, make_agent(ran, tools=(changed,)), {0: approve(pause.drafts[0])})
    assert ran == []
    assert fields_of(journal.events, "tool_completed", "error") == [
        "The tool refund is no longer the one that was approved. Ask again.",
        "The agent no longer has the tool look.",
    ]


# Headless


HEADLESS_RULES = policy(
    rule("codes", "request_user_input", tool_name="pay", request_payload={"target_arg": "code"}),
    rule("refunds", "request_approval", tool_name="refund", terms={"unattended_approval": True}),
    rule("crashes", "request_approval", tool_name="crash"),
)


@pytest.mark.parametrize(
    ("approval", "given", "runs", "status"),
    [
        (Fallback(), Fallback(), ["look"], RunStatus.COMPLETED),
        (Fallback(action=FallbackAction.APPROVE), Fallback(), ["look", "refund"], RunStatus.COMPLETED),
        (Fallback(), Fallback(action=FallbackAction.VALUE, value="4321"), ["look", "pay"], RunStatus.COMPLETED),
        (Fallback(), Fallback(action=FallbackAction.VALUE, value="no code"), ["look"], RunStatus.COMPLETED),
        (Fallback(action=FallbackAction.FAIL), Fallback(), [], RunStatus.FAILED),
        (Fallback(), Fallback(action=FallbackAction.FAIL), [], RunStatus.FAILED),
    ],
)
async def test_headless_agent_asks_nobody(
    approval: Fallback, given: Fallback, runs: list[str], status: RunStatus
) -> None:
    ran: Ran = []
    asked = turn(CALLS["allow"], CALLS["approve"], CALLS["value"], ("crash", {"order": "A"}))
    agent = make_agent(ran, asked, interaction="headless", approval_fallback=approval, input_fallback=given)
    journal = Ledger("run_1")
    end = await drive(ModelRun(agent, START), policy=HEADLESS_RULES, journal=journal)
    assert isinstance(end, RunEnded)
    assert (end.status, sorted(name for name, _, _ in ran)) == (status, sorted(runs))
    events = [*journal.events, *end.events]
    assert kinds(events).count("tool_completed") == 4
    assert not {"run_paused", "run_resumed"} & set(kinds(events))
    assert all(step != "redeem" or state for step, _, state in journal.steps), "its batch is saved before it runs"


# Budgets


@pytest.mark.parametrize(
    ("budgets", "name"),
    [
        (Budgets(max_steps=3), "max_steps"),
        (Budgets(max_tool_calls=3), "max_tool_calls"),
        (Budgets(max_wall_time_s=0), "max_wall_time_s"),
        (Budgets(max_transcript_bytes=100), "max_transcript_bytes"),
    ],
)
async def test_exceeded_budget_degrades_an_endless_run(budgets: Budgets, name: str) -> None:
    class Endless:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            return turn(CALLS["allow"], ("drop", {"order": "B"}), text="Still looking.")

    journal = Ledger("run_1")
    end = await drive(ModelRun(make_agent([], model=Endless(), budgets=budgets), START), policy=POLICY, journal=journal)
    assert isinstance(end, RunEnded)
    assert end.status is RunStatus.DEGRADED
    assert isinstance(end.result, dict)
    assert end.result["reason"] == end.error
    assert name in str(end.error)
    assert end.events[-1].type == "warning"
    assert (end.events[-1].data["budget"], end.events[-1].data["message"]) == (name, end.error)
    steps = end.result["steps"]
    assert end.result["completed"] == ["look"] * (len(end.state.executions) // 2)
    assert steps == 0 or end.result["text"] == "Still looking."
    assert name != "max_steps" or steps == 3
    if name == "max_tool_calls":
        assert end.result["missing"] == ["drop", "look", "drop"]
        assert "tool_batch_started" not in kinds(end.events), "a batch beyond the budget is not begun"


async def test_model_that_never_answers_ends_with_the_budget() -> None:
    class Silent:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            await asyncio.Event().wait()
            return DONE

    agent = make_agent([], model=Silent(), budgets=Budgets(max_wall_time_s=0.01))
    end = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(end, RunEnded)
    assert (end.status, "max_wall_time_s" in str(end.error)) == (RunStatus.DEGRADED, True)


async def test_elapsed_time_survives_a_suspension_without_waiting_time() -> None:
    agent = make_agent([], turn(CALLS["approve"]), budgets=Budgets(max_wall_time_s=1000))
    spent = START.model_copy(update={"spent_ms": 999_000})
    pause = await drive(ModelRun(agent, spent), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    assert 999_000 < pause.state.spent_ms < 1_000_000
    late = pause.state.model_copy(update={"spent_ms": 1_000_001})
    end = await drive(
        ModelRun(agent, late), policy=POLICY, journal=Ledger("run_1"), outcomes={0: approve(pause.drafts[0])}
    )
    assert isinstance(end, RunEnded)
    assert end.status is RunStatus.DEGRADED
    assert [result.success for result in end.state.executions] == [True], "what was approved is done first"


# What goes wrong


async def test_model_error_fails_the_run() -> None:
    class Broken:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            raise ModelError("The model endpoint answered 500.")

    end = await drive(ModelRun(make_agent([], model=Broken()), START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(end, RunEnded)
    assert (end.status, end.error) == (RunStatus.FAILED, "The model endpoint answered 500.")


async def test_tool_error_is_a_failed_call_and_the_run_continues() -> None:
    journal = Ledger("run_1")
    end = await drive(ModelRun(make_agent([], turn(("crash", {"order": "A"}))), START), policy=POLICY, journal=journal)
    assert isinstance(end, RunEnded)
    assert end.status is RunStatus.COMPLETED
    assert fields_of(journal.events, "tool_completed", "success", "error") == [(False, "RuntimeError: no A")]


async def test_model_turn_cut_off_adds_a_warning() -> None:
    cut = ModelTurn(text="It beg", finish_reason="length")
    end = await drive(ModelRun(make_agent([], cut), START), policy=POLICY, journal=Ledger("run_1"))
    assert kinds(end.events) == ["llm_completed", "warning"]
    assert "length" in end.events[1].data["message"]


@pytest.mark.parametrize("output", ["x" * 300_000, ["é" * 1000] * 200, list(range(30_000)), "deep"])
async def test_output_too_large_is_cut_with_a_warning(output: Any) -> None:
    if output == "deep":
        for _ in range(40):
            output = [output]

    @tool
    def dump() -> Any:
        """Dump."""
        return output

    journal = Ledger("run_1")
    agent = make_agent([], turn(("dump", {})), tools=(dump,))
    end = await drive(ModelRun(agent, START), policy=policy(), journal=journal)
    assert isinstance(end, RunEnded)
    (kept,) = fields_of(journal.events, "tool_completed", "output")
    assert len(kept.encode()) < 256 * 1024 + 100
    assert kept.endswith("bytes in all]")
    assert fields_of(journal.events, "warning", "tool_name") == ["dump"]
    append_events(TrailHead(), tuple(journal.events), 0)
    assert reload(end.state) == end.state


async def test_calls_of_one_batch_run_together_but_not_more_than_sixteen() -> None:
    at_once: list[int] = [0]
    most: list[int] = [0]
    full = asyncio.Event()

    @tool
    async def meet() -> None:
        """Wait for fifteen others."""
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        if at_once[0] == 16:
            full.set()
        await asyncio.wait_for(full.wait(), 20)
        at_once[0] -= 1

    agent = make_agent([], turn(*[("meet", {})] * 40), tools=(meet,))
    await drive(ModelRun(agent, START), policy=policy(), journal=Ledger("run_1"))
    assert most == [16]
