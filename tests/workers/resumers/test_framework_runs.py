"""A run of another framework is driven by the drain like any other; here the framework is a few lines of our own."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from sayso.canonical_json import JsonObject
from sayso.errors import IllegalTransition, ModelError, PolicyForbids
from sayso.records.run_state import seal_state
from sayso.records.suspensions import Origin, RunRef, RunStatus
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkState, FrameworkTurn, build_agent, describe_result
from service.store.runs.runs import Run
from service.wiring import Wiring
from tests.workers.resume.test_driving import decide, draining, trail, until, wiring  # noqa: F401
from workers.clock import ticks as clock
from workers.resume import driving as resume

ORIGIN = Origin(framework="pydantic_ai", state_schema="plain/1")
MONEY: JsonObject = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
TOOLS = {name: ToolDefinition(name=name, parameters=MONEY) for name in ("refund", "look_up", "drop")}


@dataclass
class Plain:
    """A framework that plays turns, each a list of calls, and keeps what it was told as its state."""

    turns: list[list[tuple[str, str]]]
    origin: Origin = ORIGIN
    ran: list[JsonObject] = field(default_factory=list)
    fails_after_tools: int = 0
    hindrance: str | None = None
    faults: dict[int, Exception] = field(default_factory=dict)
    end: Done | None = None
    subagent: str | None = None

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return self._next({"told": []})

    async def find_fault(self, native: JsonObject) -> str | None:
        return self.hindrance

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        told: list[Any] = list(native["told"])  # type: ignore[arg-type]
        for at, one in enumerate(executor.calls):
            if (fault := self.faults.pop(at, None)) is not None:
                raise fault
            told.append(describe_result(one, await executor.run(one, self._run)))
        if self.fails_after_tools:
            self.fails_after_tools -= 1
            raise ModelError("The model is away.")
        return self._next({"told": told, "turn": int(str(native.get("turn", 0))) + 1})

    def _next(self, native: JsonObject) -> FrameworkTurn | Done:
        turn = int(str(native.get("turn", 0)))
        if turn == len(self.turns):
            return self.end or Done(native["told"], external_events=({"type": "note", "n": turn},))
        calls = [
            RequestedCall(call_id=f"c{at}", name=name, args_json=a, subagent=self.subagent)
            for at, (name, a) in enumerate(self.turns[turn])
        ]
        return FrameworkTurn(native, tuple(calls), external_events=({"type": "note", "n": turn},))

    async def _run(self, args: JsonObject) -> str:
        self.ran.append(args)
        return f"ran {args['amount']}"


async def begin(
    wiring: Wiring,  # noqa: F811
    framework: Plain,
    monkeypatch: pytest.MonkeyPatch,
    origin: Origin = ORIGIN,
    **options: Any,
) -> FrameworkAgent:
    agent = build_agent(framework, "plain", TOOLS, **options)
    monkeypatch.setitem(resume.agents, "plain", agent)
    state = FrameworkState(agent="plain", framework=origin.framework, state_schema="plain/1", text="go")
    run = RunRef(id="run_x", agent="plain", owner="bot", thread_id="t")
    on_deny = agent.approval_denial_policy
    await wiring.desk.start(run, seal_state(state.model_dump_json().encode()), on_deny, origin=origin)
    return agent


ONE = [[("refund", '{"amount": 5}'), ("look_up", '{"amount": 1}'), ("drop", '{"amount": 2}')]]


async def test_approved_calls_run_through_the_executor(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        paused = await until(wiring, RunStatus.SUSPENDED)
        assert framework.ran == [], "the siblings of a call that waits wait with it"
        await decide(wiring, paused, action="approve", args={"amount": 3})
        ended = await until(wiring, RunStatus.COMPLETED)
    assert framework.ran == [{"amount": 3}, {"amount": 1}]
    edited, looked, dropped = results_of(ended)
    assert "A reviewer changed the arguments" in edited
    assert looked == "ran 1"
    assert dropped["error"] == "Denied by policy: never"
    told = await trail(wiring)
    assert (told.count("tool_completed"), told[-1]) == (3, "run_completed")


async def test_model_error_after_the_calls_reruns_nothing(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE, fails_after_tools=1)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await until_told(wiring, "run_postponed")
        await until_looked_at(wiring)
    ended = await wiring.runs.read("run_x")
    assert (ended.status, framework.ran) == (RunStatus.COMPLETED, [{"amount": 5}, {"amount": 1}])
    assert (await trail(wiring)).count("tool_completed") == 3


async def test_calls_that_never_run_are_reported_once(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain([[("refund", '{"amount": 5}')], [("drop", '{"amount": 2}'), ("refund", "{}"), ("nothing", "{}")]])
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="deny", message="no")
        ended = await until(wiring, RunStatus.COMPLETED)
    assert framework.ran == []
    assert [one["error"] for one in results_of(ended)] == [
        "no",
        "Denied by policy: never",
        'The arguments do not fit refund: arguments: "amount" is a required property',
        "There is no tool named 'nothing'. There are: refund, look_up, drop.",
    ]
    assert (await trail(wiring)).count("tool_completed") == 4


async def test_unreadable_call_is_refused_and_others_are_asked(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain([[("refund", '{"amount":'), ("refund", '{"amount": 5}')]])
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        paused = await until(wiring, RunStatus.SUSPENDED)
        found = (await wiring.desk.suspensions.read(paused.suspension_id)).record
        assert found is not None
        assert [one.tool.args for one in found.items] == [{"amount": 5}]
        await decide(wiring, paused, action="approve")
        ended = await until(wiring, RunStatus.COMPLETED)
    unread, ran = results_of(ended)
    assert "cannot be read" in unread["error"]
    assert (ran, framework.ran) == ("ran 5", [{"amount": 5}])


async def test_denial_ends_the_run_by_policy_of_the_agent(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, approval_denial_policy="fail")
        ended = await until(wiring, RunStatus.FAILED)
    assert framework.ran == []
    assert "drop was denied" in str(ended.error)


async def test_state_of_another_adapter_is_refused(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE, origin=ORIGIN.model_copy(update={"state_schema": "plain/2"}))
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await until_told(wiring, "run_postponed")
    entries = await wiring.runs.trail("run_x")
    assert "resumes only plain / pydantic_ai / plain/2" in str(entries[-1].data["error"])
    assert framework.ran == []


async def test_run_that_cannot_resume_redeems_no_permit(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE, hindrance="The thread is elsewhere.")
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await until_told(wiring, "run_postponed")
    assert framework.ran == []
    assert "permit_redeemed" not in await trail(wiring)


async def test_final_error_of_the_adapter_fails_the_run(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE, faults={0: IllegalTransition("The graph has no such node.")})
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        ended = await until(wiring, RunStatus.FAILED)
    assert (ended.error, framework.ran) == ("The graph has no such node.", [])
    assert (await trail(wiring))[-2:] == ["permit_returned", "run_failed"]


async def test_permit_is_returned_when_the_adapter_starts_no_call(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE, faults={0: ModelError("The model is away.")})
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await until_told(wiring, "run_postponed")
        await until_looked_at(wiring)
    ended = await wiring.runs.read("run_x")
    told = await trail(wiring)
    assert (ended.status, framework.ran) == (RunStatus.COMPLETED, [{"amount": 5}, {"amount": 1}])
    assert [told.count(one) for one in ("run_paused", "permit_redeemed", "permit_returned")] == [1, 2, 1]


async def test_call_that_ran_before_the_adapter_raised_is_not_in_doubt(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain(ONE, faults={1: ModelError("The model is away.")})
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await until_told(wiring, "run_postponed")
        await until_looked_at(wiring)
    told = await trail(wiring)
    assert framework.ran == [{"amount": 5}, {"amount": 1}]
    assert [told.count(one) for one in ("run_paused", "tool_completed")] == [1, 3]


@pytest.mark.parametrize("status", [RunStatus.DEGRADED, RunStatus.FAILED, RunStatus.CANCELLED])
async def test_run_ends_with_the_status_of_its_framework(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    status: RunStatus,
) -> None:
    framework = Plain([], end=Done({"outcome": "handoff"}, status, "It is locked."))
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        ended = await until(wiring, status)
    assert (ended.result, ended.error) == ({"outcome": "handoff"}, "It is locked.")
    assert (await trail(wiring))[-1] == f"run_{status}"


async def test_external_events_of_a_framework_are_saved_once(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origin = ORIGIN.model_copy(update={"framework": "autogen"})
    framework = Plain(ONE, origin=origin, fails_after_tools=1)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, origin)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await until_told(wiring, "run_postponed")
        await until_looked_at(wiring)
    told = await wiring.external_events.read_all("run_x")
    assert [(one.source, one.source_format, one.event["n"]) for one in told] == [
        ("autogen", "autogen", n) for n in (0, 1)
    ]
    assert told[0].seq < told[1].seq


WRITER_DENIED = """version: 1
default: request_approval
rules:
  - {id: no-writers, priority: 300, subagent: writer, action: deny, reason: No writers}
  - {id: lookups, tool: look_up, action: allow}
"""


@pytest.mark.parametrize(("subagent", "ran"), [("", True), ("editor", True), ("writer", False), (None, False)])
async def test_deny_rule_about_a_subagent_holds(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    subagent: str | None,
    ran: bool,
) -> None:
    """The rule stood above an allow, and the call ran. Where nobody knows the sub-agent, a person is asked."""
    framework = Plain([[("look_up", '{"amount": 1}')]], subagent=subagent)
    write_rules(wiring, WRITER_DENIED)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await until(wiring, RunStatus.SUSPENDED if subagent is None else RunStatus.COMPLETED)
    assert bool(framework.ran) is ran


async def test_rule_about_a_subagent_judges_edits_by_the_service(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service that takes the edit knows the sub-agent as the worker did, and the agent's context."""
    rules = """version: 1
default: request_approval
rules:
  - {id: small-writers, subagent: writer, when: args.amount > 3 && context.tier == "free", action: deny}
"""
    framework = Plain([[("look_up", '{"amount": 1}')]], subagent="writer")
    write_rules(wiring, rules)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, context={"tier": "free"})
        paused = await until(wiring, RunStatus.SUSPENDED)
        with pytest.raises(PolicyForbids, match="small-writers"):
            await decide(wiring, paused, action="approve", args={"amount": 4})


async def test_denied_model_call_stops_a_framework(
    wiring: Wiring,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = Plain([[("look_up", '{"amount": 1}')]])
    denied = "  - {id: no-models, subjects: [llm_call], when: step > 1, action: deny}\n"
    write_rules(wiring, f"version: 1\ndefault: allow\nrules:\n{denied}")
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        ended = await until(wiring, RunStatus.DEGRADED)
    assert framework.ran == []
    assert "The rules do not let the agent ask its model" in str(ended.error)


def results_of(ended: Run) -> list[Any]:
    assert isinstance(ended.result, list)
    return ended.result


def write_rules(wiring: Wiring, text: str) -> None:  # noqa: F811
    assert wiring.settings.policy is not None
    wiring.settings.policy.write_text(text)


async def until_looked_at(wiring: Wiring) -> None:  # noqa: F811
    """Look at what is due until the run has ended."""
    for _ in range(100_000):
        await clock.process_due(wiring)
        if (await wiring.runs.read("run_x")).status.ended:
            return
    raise AssertionError("the run never ended")


async def until_told(wiring: Wiring, kind: str) -> None:  # noqa: F811
    with wiring.watch.on("run_x") as moved:
        listening = asyncio.create_task(wiring.watch.listen())
        while kind not in await trail(wiring):
            await asyncio.wait_for(moved.wait(), 20)
            moved.clear()
        listening.cancel()
