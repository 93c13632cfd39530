"""Rules about subagents and model calls in runs of another framework."""

import pytest

from sayso.core.records.suspensions import ModelUsage, Progress, RunStatus
from sayso.errors import PolicyForbids
from service.core.wiring import Wiring
from tests.workers.resume.resumers.scripted_framework import ScriptedFramework, begin, process_until_rest, write_rules
from tests.workers.runs import await_event, decide, draining, until

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


LONG_RUNS = """version: 1
default: allow
rules:
  - {id: long-runs, tool: "*", when: run.tokens > 250, action: request_approval}
"""
TURNS = [[("look_up", '{"amount": 1}')], [("look_up", '{"amount": 2}')], [("look_up", '{"amount": 3}')]]
USED = ModelUsage(model="m-1", input_tokens=90, output_tokens=10, model_calls=1)


async def test_rule_on_tokens_holds_the_later_call(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resume whose model was away is tried again. Its tokens count once."""
    inner = ModelUsage(model="", input_tokens=5, model_calls=1)
    framework = ScriptedFramework(TURNS, usage=[(USED,), (USED, inner), (USED,)], fails_after_tools=1)
    write_rules(wiring, LONG_RUNS)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, progress=Progress(usage=()))
        await await_event(wiring, "run_postponed")
        suspended = await process_until_rest(wiring)
        record = (await wiring.desk.suspensions.read(suspended.suspension_id)).record
    assert [one["amount"] for one in framework.ran] == [1, 2]
    assert record.progress is not None
    total = ModelUsage(model="m-1", input_tokens=270, output_tokens=30, model_calls=3)
    assert record.progress.usage == (inner, total)
    assert [item.terms.rule_id for item in record.items] == ["long-runs"]


@pytest.mark.parametrize(
    ("progress", "usage"),
    [
        pytest.param(Progress(usage=()), [None], id="not reported"),
        pytest.param(Progress(), [(USED,)], id="begun by an earlier version"),
        pytest.param(None, [(USED,)], id="begun in a process of the agent"),
    ],
)
async def test_rule_on_unknown_tokens_asks(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
    progress: Progress | None,
    usage: list[tuple[ModelUsage, ...] | None],
) -> None:
    framework = ScriptedFramework(TURNS, usage=usage)
    write_rules(wiring, LONG_RUNS)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, progress=progress)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        record = (await wiring.desk.suspensions.read(suspended.suspension_id)).record
    assert framework.ran == []
    assert "could not be evaluated" in str(record.items[0].prompt.reason)
