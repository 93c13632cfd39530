"""The OpenAI Agents SDK's `function_tool` over `gate`."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agents import Agent, RunContextWrapper, Runner, function_tool
from agents.tool_context import ToolContext

from tests.frameworks.decorators.gates import Till, play_gates
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.edge_cases.openai_agents_guarded import QUIET, Asker


async def run(function: Any) -> Any:
    """Let an agent call the tool."""
    made = function_tool(name_override="send_money")(function)
    return (await Runner.run(Agent("bot", model=Asker("ann"), tools=[made]), "Pay.", run_config=QUIET)).final_output


def add_context(till: Till) -> Mapping[str, Callable[[], Any]]:
    """Return functions that take the call's context."""

    def send_money(context: RunContextWrapper[Any], to: str) -> str:
        """Send money to somebody."""
        return till.send(to)

    async def later(context: ToolContext[Any], to: str) -> str:
        """Send money to somebody."""
        return till.send(to if context.tool_call_id == "c0" else "nobody")

    return {"with context": lambda: till.gate(send_money), "async with context": lambda: till.gate(later)}


if __name__ == "__main__":
    print_json(asyncio.run(play_gates(run, add_context, function_tool(name_override="send_money"))))
