"""The AFK gate: what it refuses, and the events and faults that it reports."""

import subprocess
import sys
from typing import Any

import pytest

from sayso.adapters.afk import Afk, gate
from sayso.adapters.afk.hooks import Hooks
from sayso.errors import InvalidInput, InvalidJson
from sayso.timeline.external_events import Kind, StoredEvent
from sayso.timeline.merging import build_entries
from service.core.settings import CHECKOUT
from tests.frameworks.contracts import (
    IS_REAL,
    Runner,
)
from tests.frameworks.contracts.scripted import MemoryRows, pay
from tests.sayso.adapters.afk.worker_setups import AgentSetup, decide, read_text, resume


async def test_begin_names_the_key_of_a_state_that_is_not_json() -> None:
    setup = AgentSetup(([pay("ann", float("nan"))],))
    with pytest.raises(InvalidJson, match=r"saved.*arguments\.amount"):
        await setup.framework.begin("Pay them.")


async def test_begin_refuses_a_runner_with_another_store() -> None:
    setup = AgentSetup(([pay("ann", 1)],))
    elsewhere = MemoryRows()

    def build(hooks: Hooks) -> tuple[Any, Any]:
        _, agent = setup.build(hooks)
        return Runner(memory_store=elsewhere, interaction_provider=hooks.provider), agent

    with pytest.raises(InvalidInput, match=r"memory_store=hooks\.memory"):
        await Afk(build, lambda: setup.memory).begin("Pay them.")


async def test_find_fault_reports_a_run_resumed_elsewhere() -> None:
    setup = AgentSetup(([pay("ann", 1)],))
    asked = await setup.begin()
    assert await setup.framework.find_fault(asked.native) is None
    _, agent = setup.build(Hooks(setup.memory))
    other_runner = Runner(memory_store=setup.memory)
    await other_runner.resume(agent, run_id=str(asked.native["run_id"]), thread_id=str(asked.native["thread_id"]))
    assert "another process has resumed it" in str(await setup.framework.find_fault(asked.native))
    assert setup.pay_tool.paid == []


async def test_find_fault_ignores_our_own_earlier_attempt() -> None:
    setup = AgentSetup(([pay("ann", 1)],))
    asked = await setup.begin()
    await resume(setup, asked, decide(asked, True))
    assert await setup.framework.find_fault(asked.native) is None


async def test_tool_called_outside_the_gate_does_not_run() -> None:
    setup = AgentSetup(([pay("ann", 1)],))
    await setup.begin()
    result = await setup.hooks[-1].tools[0].call({"to": "ann", "amount": 1}, tool_call_id="c0")
    assert (result.success, setup.pay_tool.paid) == (False, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda agent, pay_tool: agent.tools.append(pay_tool.tool), "not gated"),
        (lambda agent, pay_tool: agent.policy_roles.clear(), "lacks Sayso.s role"),
        (lambda agent, pay_tool: agent.subagents.append(agent), "has subagents"),
    ],
    ids=["a loose tool", "no role", "subagents"],
)
def test_gate_refuses_an_agent_with_ungated_tools(change: Any, message: str) -> None:
    setup = AgentSetup(())

    def build(hooks: Hooks) -> tuple[Any, Any]:
        runner, agent = setup.build(hooks)
        change(agent, setup.pay_tool)
        return runner, agent

    with pytest.raises(InvalidInput, match=message):
        gate(build, name="bot", memory=lambda: setup.memory)


def test_gate_describes_the_tools() -> None:
    agent = gate(AgentSetup(()).build, name="bot", memory=MemoryRows, idempotent={"pay"})
    (pay_,) = agent.tools
    assert (pay_.name, pay_.definition.description, pay_.idempotent) == ("pay", "Pay somebody.", True)
    assert agent.manifest().origin.framework == "afk"


async def test_begin_returns_the_events_before_the_suspension() -> None:
    asked = await AgentSetup(([pay("ann", 1)],)).begin()
    kinds = [one["type"] for one in asked.external_events]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_paused")


async def test_timeline_shows_a_resumed_step_once() -> None:
    setup = AgentSetup(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await setup.begin()
    ended = await resume(setup, asked, decide(asked, True, "Not Bob."))
    at = range(len(asked.external_events) + len(ended.external_events))
    kept = [
        StoredEvent(position=n, source="afk", source_format="afk", seq=n, at_ms=n, event=event)
        for n, event in zip(at, (*asked.external_events, *ended.external_events), strict=True)
    ]
    entries = build_entries(kept)
    calls = [(one.name, one.call_id) for one in entries if one.kind is Kind.CALL]
    assert calls == [("pay", "c0"), ("pay", "c1")]
    assert [one.text for one in entries].count("Turn 0.") == 1
    assert [one.text for one in entries].count("Step 1") == 1
    assert not [one for one in entries if one.kind is Kind.PROBLEM]


def test_load_types_names_the_source_of_afk_if_missing() -> None:
    script = "from sayso.adapters.afk.tools import load_types; load_types()"
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 or IS_REAL
    assert "not on PyPI" in done.stderr or IS_REAL


@pytest.mark.skipif(not IS_REAL, reason="AFK's own checkout is not on the path (it is not on PyPI)")
async def test_real_afk_runner_suspends_and_resumes() -> None:
    """All tests of AFK use its own runner if it is installed."""
    from afk.core.runner import Runner as Real

    assert Runner is Real
    setup = AgentSetup(([pay("ann", 1)],), options={})
    asked = await setup.begin()
    assert "paid 1 to ann" in read_text(await resume(setup, asked, decide(asked, True)))
