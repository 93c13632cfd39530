"""Tests of tools of our own runner in which a framework starts a tool that no gate has seen."""

import asyncio
from typing import Any

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.suspensions import RunStatus
from sayso.guarding.runs import find_refusal, refuse_unseen
from sayso.runner.agents import Agent
from sayso.runner.local import HeadlessProvider, run_agent
from sayso.runner.models import ScriptedModel
from sayso.runner.tools import Tool, tool
from tests.sayso.runners import DONE, fields_of, turn


@tool
async def delegate(to: str) -> str:
    """Let an agent pay."""
    refuse_unseen("send_money", "payer")
    return f"sent to {to}"


@tool
def delegate_blocking(to: str) -> str:
    """Let an agent pay, in the thread of the call."""
    refuse_unseen("send_money", "payer")
    return f"sent to {to}"


@tool
async def hide(to: str) -> str:
    """Hide that the agent did not pay."""
    assert find_refusal("send_money", "payer")
    return f"sent to {to}"


@tool
async def fail(to: str) -> str:
    """Fail with another error, because the agent did not pay."""
    assert find_refusal("send_money", "payer")
    raise KeyError(to)


async def run(made: Tool) -> Any:
    """Return success, output and error of the only call of an agent's run."""
    model = ScriptedModel([turn((made.name, {"to": "ann"})), DONE])
    agent = Agent(name="bot", instructions="Pay.", tools=(made,), model=model)
    ended = await run_agent(agent, "Pay.", policy=Policy(default=Action.ALLOW), provider=HeadlessProvider())
    assert ended.status is RunStatus.COMPLETED
    return fields_of(ended.events, "tool_completed", "success", "output", "error")[0]


@pytest.mark.parametrize("made", [delegate, delegate_blocking, hide, fail], ids=lambda one: one.name)
async def test_call_whose_tool_starts_an_unseen_one_fails(made: Tool) -> None:
    success, output, error = await run(made)
    assert (success, output) == (False, None)
    assert error.startswith(f"send_money was called inside {made.name} without review, so it did not run.")
    assert "Give its tools to the gated agent 'bot'" in error


async def test_run_beside_that_of_our_runner_is_not_guarded() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        started.set()
        await ended.wait()

    async def work() -> str | None:
        await started.wait()
        ended.set()
        return find_refusal("send_money", "payer")

    beside = asyncio.create_task(work())
    model = ScriptedModel([turn(("wait", {})), DONE])
    agent = Agent(name="bot", instructions="Wait.", tools=(wait,), model=model)
    await run_agent(agent, "Wait.", policy=Policy(default=Action.ALLOW), provider=HeadlessProvider())
    assert await beside is None
    assert find_refusal("send_money", "payer") is None
