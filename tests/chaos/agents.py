"""Give the storm its agents: a model that asks for what the run's plan says, and tools that write down what they do."""

import json
import os
import time
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, digest_json
from sayso.clock import new_id, now_ms
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.agents import Agent, DenialPolicy
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall
from sayso.runner.tools import CallContext, Tool, tool
from service.settings import load
from tests.chaos.effects import EffectLine, write_effect
from tests.chaos.plans import AGENTS, TOOLS, Kind, Plan

SLOW_S = 2.8
"""Longer than the storm's lease, which is renewed while the tool runs."""


class PlannedModel:
    """Asks for the calls of the plan it is given as its input, turn by turn; the transcript tells where it is."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the next turn of the plan, and a last word after it."""
        asked = next(message["content"] for message in messages if message["role"] == "user")
        plan = Plan.model_validate_json(str(asked))
        said = sum(message["role"] == "assistant" for message in messages)
        if said >= len(plan.turns):
            return ModelTurn(text="Done.")
        calls = (
            RequestedCall(call_id=one.call_id, name=one.tool, args_json=_write(one.args)) for one in plan.turns[said]
        )
        return ModelTurn(calls=tuple(calls))


def _write(args: JsonObject) -> str:
    return json.dumps(args, ensure_ascii=False)


def _build_tool(name: str, kind: Kind) -> Tool:
    def act(account: str, amount: int, note: str, call: CallContext) -> JsonValue:
        return _act(name, kind, {"account": account, "amount": amount, "note": note}, call)

    def act_on(account: str, amount: int, note: str, day: str, call: CallContext) -> JsonValue:
        return _act(name, kind, {"account": account, "amount": amount, "note": note, "day": day}, call)

    return tool(name=name, idempotent=kind.idempotent, description=name)(act_on if kind.asks_day else act)


def _act(name: str, kind: Kind, args: JsonObject, call: CallContext) -> JsonValue:
    """Write that the call starts, take the time it takes, and write that it has ended."""
    line = EffectLine(
        what="start",
        at_ms=now_ms(),
        effect=new_id("eff"),
        run_id=call.run_id,
        call_id=call.call_id,
        tool=name,
        key=call.idempotency_key,
        digest=digest_json(args),
        attempt=call.attempt,
        pid=os.getpid(),
    )
    write_effect(_home(), line)
    if kind.slow:
        time.sleep(SLOW_S)  # between looks: a tool that outlasts its lease
    write_effect(_home(), line.model_copy(update={"what": "end", "at_ms": now_ms()}))
    return {"effect": line.effect}


@cache
def _home() -> Path:
    return load().home


def _build_agent(name: str, denial: DenialPolicy) -> Agent:
    tools = tuple(_build_tool(label, kind) for label, kind in TOOLS.items())
    return Agent(name=name, instructions="Storm.", tools=tools, model=PlannedModel(), approval_denial_policy=denial)


going_on = _build_agent(AGENTS[0], "continue")
degrading = _build_agent(AGENTS[1], "degrade")
failing = _build_agent(AGENTS[2], "fail")

PATHS = "tests.chaos.agents:going_on,tests.chaos.agents:degrading,tests.chaos.agents:failing"
