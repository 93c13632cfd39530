"""A worker gives integers of any size to the calls that it runs, exactly, and `3.0` for an integer as `3`."""

import json
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolCall
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, ScriptedModel
from sayso.runner.tools import tool
from service.core.wiring import Wiring
from tests.service.channels.given import BEYOND, PAIRS
from tests.workers.resume.resumers.test_calls import answer, bring
from tests.workers.runs import decide, draining, start, turn, until
from workers.resume import driving as resume

got: list[str] = []


@tool
async def refund(order: int) -> int:
    """Refund an order."""
    got.append(json.dumps(order))
    return order


AGENT = "exact"


@pytest.fixture
def payer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what registers an agent whose model asks for this refund."""
    got.clear()

    def register(order: int) -> None:
        model = ScriptedModel([turn(("refund", json.dumps({"order": order}))), ModelTurn(text="done")])
        monkeypatch.setitem(resume.agents, AGENT, Agent(name=AGENT, instructions="x", tools=(refund,), model=model))

    return register


@pytest.mark.parametrize("order", BEYOND)
async def test_approved_integer_of_a_run_reaches_the_tool_exactly(wiring: Wiring, payer: Any, order: int) -> None:
    payer(order)
    async with draining(wiring):
        await start(wiring, AGENT)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert got == [str(order)]


@pytest.mark.parametrize(("sent", "given"), PAIRS)
async def test_edited_integer_of_a_run_reaches_the_tool_exactly(
    wiring: Wiring, payer: Any, sent: float, given: int
) -> None:
    payer(2**81)
    async with draining(wiring):
        await start(wiring, AGENT)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        await decide(wiring, suspended, action="approve", args={"order": sent})
        await until(wiring, RunStatus.COMPLETED)
    assert got == [str(given)]


@pytest.mark.parametrize(("sent", "given"), PAIRS)
async def test_edited_integer_of_a_call_reaches_the_tool_exactly(
    wiring: Wiring, payer: Any, sent: float, given: int
) -> None:
    payer(0)
    call = ExternalCall(ToolCall(call_id="c0", index=0, name="refund", args={"order": 2**81}), refund.definition)
    async with draining(wiring):
        asked = await bring(wiring, call, agent=AGENT)
        await answer(wiring, asked, action="approve", args={"order": sent})
        ended = await until(wiring, RunStatus.COMPLETED)
    assert got == [str(given)]
    assert str(given) in json.dumps(ended.result)
