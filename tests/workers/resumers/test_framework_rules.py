"""Rules about subagents and model calls in runs of another framework."""

import pytest

from sayso.errors import PolicyForbids
from sayso.records.suspensions import Progress, RunStatus
from service.wiring import Wiring
from tests.workers.resumers.scripted_framework import ScriptedFramework, begin, write_rules
from tests.workers.runs import decide, draining, until

WRITER_DENIED = """version: 1
default: request_approval
rules:
  - {id: no-writers, priority: 300, subagent: writer, action: deny, reason: No writers}
  - {id: lookups, tool: look_up, action: allow}
"""


@pytest.mark.parametrize(("subagent", "ran"), [("", True), ("editor", True), ("writer", False), (None, False)])
async def test_deny_rule_about_a_subagent_holds(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
    subagent: str | None,
    ran: bool,
) -> None:
    """The deny rule is above an allow rule. If the sub-agent is unknown, a person is asked."""
    framework = ScriptedFramework([[("look_up", '{"amount": 1}')]], subagent=subagent)
    write_rules(wiring, WRITER_DENIED)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await until(wiring, RunStatus.SUSPENDED if subagent is None else RunStatus.COMPLETED)
    assert bool(framework.ran) is ran


async def test_rule_about_a_subagent_judges_edits_by_the_service(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service that judges the edit knows the sub-agent and the agent's context, as the worker does."""
    rules = """version: 1
default: request_approval
rules:
  - {id: small-writers, subagent: writer, when: args.amount > 3 && context.tier == "free", action: deny}
"""
    framework = ScriptedFramework([[("look_up", '{"amount": 1}')]], subagent="writer")
    write_rules(wiring, rules)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, context={"tier": "free"})
        suspended = await until(wiring, RunStatus.SUSPENDED)
        with pytest.raises(PolicyForbids, match="small-writers"):
            await decide(wiring, suspended, action="approve", args={"amount": 4})


async def test_denied_model_call_stops_a_framework(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework([[("look_up", '{"amount": 1}')]])
    denied = "  - {id: no-models, subjects: [llm_call], when: step > 1, action: deny}\n"
    write_rules(wiring, f"version: 1\ndefault: allow\nrules:\n{denied}")
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        ended = await until(wiring, RunStatus.DEGRADED)
    assert framework.ran == []
    assert "The rules do not let the agent ask its model" in str(ended.error)


async def test_rule_after_a_tool_holds_from_the_next_turn(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first refund is of the same turn as the look-up, so the model had not seen its result."""
    turns = [[("look_up", '{"amount": 1}'), ("refund", '{"amount": 2}')], [("refund", '{"amount": 3}')]]
    framework = ScriptedFramework(turns)
    write_rules(
        wiring,
        "version: 1\ndefault: allow\nrules:\n  - {id: taint, tool: refund, after: look_up, action: request_approval}\n",
    )
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        record = (await wiring.desk.suspensions.read(suspended.suspension_id)).record
        assert [one["amount"] for one in framework.ran] == [1, 2]
        assert record.progress == Progress(tools=("look_up", "refund"))
        await decide(wiring, suspended, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert len(framework.ran) == 3
