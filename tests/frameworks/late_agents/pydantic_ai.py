"""Pydantic AI agents that a gated tool gets only when it runs."""

import asyncio
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset

from sayso.adapters.pydantic_ai import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import Payers, pay, play_variants, send_gated


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Call the only tool once, then repeat its result."""
    results = [str(part.content) for one in messages for part in one.parts if part.part_kind == "tool-return"]
    call = ToolCallPart(info.function_tools[0].name, {"to": "ann"}, "c0")
    return ModelResponse([TextPart(results[0]) if results else call])


def send_money(to: str) -> str:
    """Send money to somebody."""
    return pay(to)


def make_payer(*tools: Any) -> Agent[None, str]:
    """Return an agent that pays."""
    return Agent(FunctionModel(answer), name="payer", tools=tools or [send_money])


async def run(payer: Any, to: str) -> str:
    """Let an agent pay."""
    return str((await payer.run(to)).output)


class Holder:
    """Dependencies that hold an agent."""

    def __init__(self) -> None:
        self.payer = make_payer()


async def from_deps(ctx: RunContext[Holder], to: str) -> str:
    """Pay through an agent of the dependencies."""
    return await run(ctx.deps.payer, to)


async def with_toolset(to: str) -> str:
    """Pay through an agent whose tools come with the run."""
    payer = Agent(FunctionModel(answer), name="payer")
    return str((await payer.run(to, toolsets=[FunctionToolset([send_money])])).output)


def make(tool: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    agent: Agent[Any, str] = Agent(FunctionModel(answer), deps_type=Holder, tools=[tool])
    return gate(agent, name="bot", deps=Holder)


async def main() -> None:
    """Play each variant."""
    payers = Payers("pydantic_ai", make_payer, run, make, send_money, send_gated)
    print_json(await play_variants(payers, (from_deps, with_toolset), (ToolManager,), (ToolManager, "_raw_execute")))


if __name__ == "__main__":
    asyncio.run(main())
