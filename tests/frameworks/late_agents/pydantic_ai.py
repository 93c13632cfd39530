"""Pydantic AI agents that a gated tool gets only when it runs."""

import asyncio
from functools import cache
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset

from sayso.adapters.pydantic_ai import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import play, print_json
from tests.frameworks.late_agents.variants import (
    list_guarded,
    pay,
    play_all,
    play_beside,
    refuse_without,
    run_in_pool,
    run_in_thread,
    send_gated,
)


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


@cache
def get_payer() -> Agent[None, str]:
    return make_payer()


class Holder:
    """Dependencies that hold an agent."""

    def __init__(self) -> None:
        self.payer = make_payer()


async def built(to: str) -> str:
    """Pay through an agent made on the spot."""
    return str((await make_payer().run(to)).output)


async def cached(to: str) -> str:
    """Pay through an agent of a factory."""
    return str((await get_payer().run(to)).output)


async def imported(to: str) -> str:
    """Pay through an agent of another module."""
    from tests.frameworks.late_agents.payers import pydantic_ai as payer

    return str((await payer.run(to)).output)


async def from_deps(ctx: RunContext[Holder], to: str) -> str:
    """Pay through an agent of the dependencies."""
    return str((await ctx.deps.payer.run(to)).output)


def in_sync(to: str) -> str:
    """Pay through an agent, without awaiting it."""
    return run_in_thread(lambda: built(to))


def in_pool(to: str) -> str:
    """Pay through an agent in a pool of threads."""
    return run_in_pool(lambda: built(to))


async def with_toolset(to: str) -> str:
    """Pay through an agent whose tools come with the run."""
    payer = Agent(FunctionModel(answer), name="payer")
    return str((await payer.run(to, toolsets=[FunctionToolset([send_money])])).output)


async def swallowed(to: str) -> str:
    """Pay through an agent, and hide that it failed."""
    try:
        return await built(to)
    except Exception:  # noqa: BLE001 - this is the attempt
        return "all is well"


async def gated_function(to: str) -> str:
    """Pay through an agent whose tool has a gate of its own."""
    return str((await make_payer(send_gated).run(to)).output)


async def gated_agent(to: str) -> str:
    """Pay through an agent that is gated, too."""
    return str((await play(make(send_money)))["result"])


def make(tool: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    agent: Agent[Any, str] = Agent(FunctionModel(answer), deps_type=Holder, tools=[tool])
    return gate(agent, name="bot", deps=Holder)


async def main() -> None:
    """Play each variant."""
    started = asyncio.Event()

    async def wait(to: str) -> str:
        """Wait for an agent beside this one."""
        started.set()
        await asyncio.sleep(0)
        return to

    late = (built, cached, imported, from_deps, in_sync, in_pool, with_toolset, swallowed, gated_function, gated_agent)
    played = await play_all(make, {one.__name__: one for one in late})
    beside = await play_beside(make(wait), started, lambda: built("ann"))
    guarded = list_guarded(ToolManager)
    changed = refuse_without(ToolManager, "_raw_execute", lambda: make(send_money))
    print_json({"played": played, "beside": beside, "guarded": guarded, "changed": changed})


if __name__ == "__main__":
    asyncio.run(main())
