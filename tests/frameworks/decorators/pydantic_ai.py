"""Pydantic AI's `agent.tool` and `agent.tool_plain` over `gate`."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.frameworks.decorators.gates import Till, play_gates
from tests.frameworks.edge_cases.local_runs import print_json


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Call the only tool once, then repeat its result."""
    results = [str(part.content) for one in messages for part in one.parts if part.part_kind == "tool-return"]
    call = ToolCallPart(info.function_tools[0].name, {"to": "ann"}, "c0")
    return ModelResponse([TextPart(results[0]) if results else call])


async def run(function: Any) -> Any:
    """Let an agent call the tool."""
    agent: Agent[str, str] = Agent(FunctionModel(answer), deps_type=str)
    (agent.tool if "ctx" in function.__annotations__ else agent.tool_plain)(function)
    return (await agent.run("Pay.", deps="the bank")).output


def add_context(till: Till) -> Mapping[str, Callable[[], Any]]:
    """Return functions that take the run's context."""

    def send_money(ctx: RunContext[str], to: str) -> str:
        """Send money to somebody."""
        return till.send(to if ctx.deps == "the bank" else "nobody")

    async def later(ctx: RunContext[str], to: str) -> str:
        """Send money to somebody."""
        return till.send(to if ctx.deps == "the bank" else "nobody")

    return {"with context": lambda: till.gate(send_money), "async with context": lambda: till.gate(later)}


if __name__ == "__main__":
    print_json(asyncio.run(play_gates(run, add_context, Agent(FunctionModel(answer)).tool_plain)))
