"""A framework with scripted turns, and how its runs are started and driven."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import ModelUsage, Origin, Progress, RunRef, RunStatus
from sayso.core.records.tools import ToolDefinition
from sayso.errors import ModelError
from sayso.runner.execution import CallExecutor, current_call
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkState, FrameworkTurn, build_agent, describe_result
from service.core.store.runs.runs import Run
from service.core.wiring import Wiring
from tests.workers.runs import await_event, decide, draining, trail, until
from workers.clock import ticks as clock
from workers.resume import driving as resume

ORIGIN = Origin(framework="pydantic_ai", state_schema="plain/1")
MONEY: JsonObject = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
UNKNOWN_USAGE = Progress()
TOOLS = {
    name: ToolDefinition(name=name, parameters=MONEY, idempotent=name == "look_up")
    for name in ("refund", "look_up", "drop")
}


@dataclass
class ScriptedFramework:
    """A framework with scripted turns, each a list of calls. Its state holds the results."""

    turns: list[list[tuple[str, str]]]
    origin: Origin = ORIGIN
    ran: list[JsonObject] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    hanging_calls: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)
    fails_after_tools: int = 0
    resume_fault: str | None = None
    faults: dict[int, Exception] = field(default_factory=dict)
    end: Done | None = None
    subagent: str | None = None
    usage: list[tuple[ModelUsage, ...] | None] = field(default_factory=list)

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return self._next({"results": []})

    def is_fault(self, error: Exception) -> bool:
        return isinstance(error, RecursionError)

    async def find_fault(self, native: JsonObject) -> str | None:
        return self.resume_fault

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        results: list[Any] = list(native["results"])  # type: ignore[arg-type]
        for at, one in enumerate(executor.calls):
            if (fault := self.faults.pop(at, None)) is not None:
                raise fault
            results.append(describe_result(one, await executor.run(one, self._run)))
        if self.fails_after_tools:
            self.fails_after_tools -= 1
            raise ModelError("The model is away.")
        return self._next({"results": results, "turn": int(str(native.get("turn", 0))) + 1})

    def _next(self, native: JsonObject) -> FrameworkTurn | Done:
        turn = int(str(native.get("turn", 0)))
        if turn == len(self.turns):
            return self.end or Done(native["results"], external_events=({"type": "note", "n": turn},))
        calls = [
            RequestedCall(call_id=f"c{at}", name=name, args_json=a, subagent=self.subagent)
            for at, (name, a) in enumerate(self.turns[turn])
        ]
        usage = self.usage[turn] if turn < len(self.usage) else None
        return FrameworkTurn(native, tuple(calls), external_events=({"type": "note", "n": turn},), usage=usage)

    async def _run(self, args: JsonObject) -> str:
        call = current_call()
        assert call is not None
        self.ran.append(args)
        self.keys.append(call.idempotency_key)
        self.started.set()
        if self.hanging_calls:
            self.hanging_calls -= 1
            await asyncio.Event().wait()
        return f"ran {args['amount']}"


async def begin(
    wiring: Wiring,
    framework: ScriptedFramework,
    monkeypatch: pytest.MonkeyPatch,
    origin: Origin = ORIGIN,
    progress: Progress | None = UNKNOWN_USAGE,
    **options: Any,
) -> FrameworkAgent:
    agent = build_agent(framework, "plain", TOOLS, **options)
    monkeypatch.setitem(resume.agents, "plain", agent)
    state = FrameworkState(
        agent="plain", framework=origin.framework, state_schema="plain/1", text="go", progress=progress
    )
    run = RunRef(id="run_x", agent="plain", owner="bot", thread_id="t")
    on_deny = agent.approval_denial_policy
    await wiring.desk.start(run, seal_state(state.model_dump_json().encode()), on_deny, origin=origin)
    return agent


ONE_TURN = [[("refund", '{"amount": 5}'), ("look_up", '{"amount": 1}'), ("drop", '{"amount": 2}')]]


async def process_until_rest(wiring: Wiring) -> Run:
    """Process what is due until the run has ended or is suspended; return it."""
    for _ in range(100_000):
        await clock.process_due(wiring)
        run = await wiring.runs.read("run_x")
        if run.status is not RunStatus.RUNNING:
            return run
    raise AssertionError("the run never came to rest")


async def retry_after_postponement(
    wiring: Wiring,
    framework: ScriptedFramework,
    monkeypatch: pytest.MonkeyPatch,
    origin: Origin = ORIGIN,
) -> list[str]:
    """Approve the refund of a run whose first attempt is postponed; return its trail once it has ended."""
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, origin)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await await_event(wiring, "run_postponed")
        await process_until_rest(wiring)
    return await trail(wiring)


def results_of(ended: Run) -> list[Any]:
    assert isinstance(ended.result, list)
    return ended.result


def write_rules(wiring: Wiring, text: str) -> None:
    assert wiring.settings.policy is not None
    wiring.settings.policy.write_text(text)
