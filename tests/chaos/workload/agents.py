"""The agents of an experiment: a model that follows the plan, and tools that record their effects."""

import json
import os
import time
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import new_id, now_ms
from sayso.core.records.tools import ToolDefinition
from sayso.runner.agents import Agent, DenialPolicy
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall
from sayso.runner.tools import CallContext, Tool, tool
from service.core.settings import load
from tests.chaos.evidence.effects import EffectLine, write_effect
from tests.chaos.workload.plans import AGENTS, TOOLS, Plan, ToolKind

SLOW_S = 2.8
"""Longer than the lease, which is renewed while the tool runs."""


class PlannedModel:
    """Requests the calls of the plan in its input, turn by turn; the transcript shows which turn is next."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the next turn of the plan, or the final text after the last one."""
        plan_json = next(message["content"] for message in messages if message["role"] == "user")
        plan = Plan.model_validate_json(str(plan_json))
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn >= len(plan.turns):
            return ModelTurn(text="Done.")
        calls = (
            RequestedCall(call_id=one.call_id, name=one.tool, args_json=_write(one.args)) for one in plan.turns[turn]
        )
        return ModelTurn(calls=tuple(calls))


def _write(args: JsonObject) -> str:
    return json.dumps(args, ensure_ascii=False)


def _build_tool(name: str, kind: ToolKind) -> Tool:
    def act(account: str, amount: int, note: str, call: CallContext) -> JsonValue:
        return _act(name, kind, {"account": account, "amount": amount, "note": note}, call)

    def act_on(account: str, amount: int, note: str, day: str, call: CallContext) -> JsonValue:
        return _act(name, kind, {"account": account, "amount": amount, "note": note, "day": day}, call)

    return tool(name=name, idempotent=kind.idempotent, description=name)(act_on if kind.needs_day else act)


def _act(name: str, kind: ToolKind, args: JsonObject, call: CallContext) -> JsonValue:
    """Record the start of the call, take its time, and record its end."""
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
        time.sleep(SLOW_S)  # between looks: the tool outlasts its lease
    write_effect(_home(), line.model_copy(update={"what": "end", "at_ms": now_ms()}))
    return {"effect": line.effect}


@cache
def _home() -> Path:
    return load().home


def _build_agent(name: str, denial: DenialPolicy) -> Agent:
    tools = tuple(_build_tool(label, kind) for label, kind in TOOLS.items())
    return Agent(name=name, instructions="Chaos.", tools=tools, model=PlannedModel(), approval_denial_policy=denial)


continuing = _build_agent(AGENTS[0], "continue")
degrading = _build_agent(AGENTS[1], "degrade")
failing = _build_agent(AGENTS[2], "fail")

PATHS = ",".join(f"tests.chaos.workload.agents:{name}" for name in ("continuing", "degrading", "failing"))
