"""Tests of the demo's agent and its tools."""

from pathlib import Path

import pytest

from demo.agents import Effects, support
from demo.model import RecordedCall, load_turns
from sayso.runner.tools import CallContext

CALLS = [call for turn in load_turns() for call in turn.calls]
CALL = CallContext(run_id="run", call_id="call", idempotency_key="key")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_HOME", str(tmp_path))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
async def test_tools_run_every_recorded_call(call: RecordedCall, tmp_path: Path) -> None:
    tool = support.tools_by_name[call.name]

    assert tool.find_fault(call.arguments) is None
    assert await tool.run(call.arguments, CALL)

    (effect,) = Effects(tmp_path).read()
    assert (effect.tool, effect.args) == (call.name, call.arguments)


async def test_tools_repeat_effects_unless_idempotent(tmp_path: Path) -> None:
    twice = []
    for call in {call.name: call for call in CALLS}.values():
        tool = support.tools_by_name[call.name]
        context = CallContext(run_id="run", call_id="call", idempotency_key=call.name)
        assert await tool.run(call.arguments, context) == await tool.run(call.arguments, context)
        if [effect.tool for effect in Effects(tmp_path).read()].count(call.name) == 2:
            twice.append(call.name)

    assert twice == [tool.name for tool in support.tools if not tool.idempotent]
    assert twice == ["bank_account.transfer", "send_email"]


async def test_calculate_interest_compounds_yearly() -> None:
    tool = support.tools_by_name["bank_account.calculate_interest"]

    assert await tool.run({"principal": 5000, "rate": 0.03, "time": 5}, CALL) == {"interest": 796.37}
