"""Agents of parsimony-agents that a gated tool gets only when it runs."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # without this, the import uses the network

from litellm.llms.custom_llm import CustomLLM
from parsimony_agents import Agent
from parsimony_agents.agent.models import AgentContext
from parsimony_agents.tools import Tool, Tools

import sayso
from sayso.adapters.parsimony import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import DESK, Payers, pay, play_variants
from tests.frameworks.parsimony_parts import add_model, make_chunk, make_tool, read_text

TO = {"to": {"type": "string"}}


class Asker(CustomLLM):
    """Requests one call of the tool that the model is named after, then repeats its result."""

    async def astreaming(self, *_args: Any, **given: Any) -> AsyncIterator[Any]:
        results = [read_text(one) for one in given["messages"] if one["role"] == "tool"]
        name, args = given["model"], '{"to": "ann"}'
        if results:
            name, args = "return_done", json.dumps({"summary": results[0]})
        function = {"name": name, "arguments": args}
        yield make_chunk(tool_use={"id": f"c{len(results)}", "type": "function", "function": function, "index": 0})
        yield make_chunk(is_finished=True, finish_reason="tool_calls")


add_model("asker", Asker())


async def send_money(to: str, **_context: Any) -> str:
    return pay(to)


@sayso.gate(client=DESK.async_client(), name="send_money", quiet=True)
async def send_gated(to: str, context: AgentContext) -> str:
    return pay(to)


def make_agent(tool: Tool) -> Agent:
    """Return an agent whose model calls this tool."""
    agent = Agent(model=f"asker/{tool.name}", instructions="Pay.", suspension_secret="secret")
    agent.system_tools = agent.tools = agent.system_tools + Tools([tool])
    return agent


def make_payer(function: Any = send_money) -> Agent:
    """Return an agent that pays."""
    return make_agent(make_tool(function, "Send money to somebody.", TO))


async def run(payer: Agent, to: str) -> str:
    """Let an agent pay."""
    results = [event.llm_content async for event in payer.run(to) if event.type == "tool_result_observed"]
    return str(results[0])


def make(function: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""

    async def call(to: str, **_context: Any) -> Any:
        if asyncio.iscoroutinefunction(function):
            return await function(to)
        return await asyncio.to_thread(function, to)

    tool = Tool(call, function.__name__, "Pay somebody.", {"type": "object", "properties": TO}, "system")
    return gate(lambda: make_agent(tool), name="bot")


async def main() -> None:
    """Play each variant."""
    payers = Payers("parsimony", make_payer, run, make, send_money, send_gated)
    print_json(await play_variants(payers, (), (Tool,), (Tool, "__call__")))


if __name__ == "__main__":
    asyncio.run(main())
