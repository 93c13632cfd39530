"""Give the storm its agents: a model that asks for what the run's plan says, and tools that write down what they do."""

import os
import time
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from sayso.agents import Agent, DenialPolicy
from sayso.canonical import digest_json
from sayso.clock import new_id, now_ms
from sayso.decisions import JsonObject
from sayso.models import ChatMessage, ModelTurn, RequestedCall
from sayso.tool_calls import ToolDefinition
from sayso.tools import CallContext, Tool, tool
from service.settings import load
from storm.effects import EffectLine, write_effect
from storm.plans import AGENTS, TOOLS, Kind, Plan

SLOW_S = 2.8
"""Longer than the storm's lease, which is renewed while the tool runs, and as long as a stopped worker is stopped."""


class PlannedModel:
    """Asks for the calls of the plan it is given as its input, turn by turn; the transcript tells where it is."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the next turn of the plan, and a last word after it."""
        plan = read_plan(messages)
        said = sum(message["role"] == "assistant" for message in messages)
        if said >= len(plan.turns):
            return ModelTurn(text="Done.")
        calls = [
            RequestedCall(call_id=call.call_id, name=call.tool, args_json=ToolArgs(call.args)) for call in plan.turns[said]
        ]
        return ModelTurn(calls=tuple(calls))
