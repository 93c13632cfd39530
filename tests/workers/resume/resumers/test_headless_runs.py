"""A headless run is given no value that a reviewer could not have given."""

import pytest
from pydantic import JsonValue

from sayso.core.records.suspensions import RunStatus
from sayso.core.records.terms import Fallback, FallbackAction
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, ScriptedModel
from service.core.wiring import Wiring
from tests.workers.runs import draining, look_up, start, turn, until
from workers.resume import driving as resume

POLICY = """
version: 1
default: allow
rules:
  - id: which
    tool: look_up
    action: request_user_input
    ask: {target_arg: order, response_schema: {type: string, pattern: "^A-[0-9]+$"}}
"""


@pytest.mark.parametrize(("value", "message"), [("A-7", "order A-7 is open"), ("B-7", "where nobody can be asked")])
async def test_fallback_value_counts_if_it_fits(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
    value: JsonValue,
    message: str,
) -> None:
    assert wiring.settings.policy is not None
    wiring.settings.policy.write_text(POLICY)
    agent = Agent(
        name="a",
        instructions="x",
        tools=(look_up,),
        model=ScriptedModel([turn(("look_up", "{}")), ModelTurn(text="done")]),
        interaction="headless",
        input_fallback=Fallback(action=FallbackAction.VALUE, value=value),
    )
    monkeypatch.setitem(resume.agents, "a", agent)
    async with draining(wiring):
        await start(wiring)
        await until(wiring, RunStatus.COMPLETED)
    assert message in str(await wiring.runs.trail("run_x"))
