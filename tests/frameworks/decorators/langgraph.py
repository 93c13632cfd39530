"""LangChain's `tool` over `gate`."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from tests.frameworks.decorators.gates import Till, play_gates
from tests.frameworks.edge_cases.langgraph import Asker, called
from tests.frameworks.edge_cases.local_runs import print_json


async def run(function: Any) -> Any:
    """Let an agent call the tool."""
    made = tool("send_money")(function)
    agent = create_agent(Asker(turns=[[called("send_money", "c0", to="ann")]]), [made])
    return (await agent.ainvoke({"messages": [("user", "Pay.")]}))["messages"][-1].content


def add_context(till: Till) -> Mapping[str, Callable[[], Any]]:
    """Return a function that takes the run's configuration."""

    async def later(to: str, config: RunnableConfig) -> str:
        """Send money to somebody."""
        return till.send(f"{to}" if "callbacks" in config else "nobody")

    return {"with context": lambda: till.gate(later)}


if __name__ == "__main__":
    print_json(asyncio.run(play_gates(run, add_context, tool("send_money"))))
