"""Agents of CrewAI that a gated tool gets only when it runs."""

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent, Crew, Task
from crewai.hooks import tool_hooks
from crewai.llm import LLM
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from crewai.utilities import tool_utils

from sayso.adapters.crewai import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import Payers, pay, play_variants, send_gated


class Asker(BaseLLM):
    """Requests one call of the only tool, then repeats its result."""

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, tools: Any = None, *_args: Any, **_more: Any) -> Any:
        results = [sent["content"] for sent in messages if sent["role"] == "tool"]
        if results:
            return results[0]
        return [
            {"id": "c0", "function": {"name": tools[0]["function"]["name"], "arguments": json.dumps({"to": "ann"})}}
        ]


class Writer(BaseLLM):
    """Requests the same call in words, as a model without function calling does."""

    def call(self, messages: Any, *_args: Any, **_more: Any) -> str:
        results = [sent["content"].rpartition("Observation:")[2] for sent in messages if sent["role"] == "assistant"]
        if results:
            return f"Thought: I now know the final answer\nFinal Answer: {results[0].strip()}"
        return 'Thought: Pay.\nAction: send_money\nAction Input: {"to": "ann"}'


class Doer(Asker):
    """Runs what it requests itself, as the clients of providers do for those who pass functions."""

    def call(self, messages: Any, tools: Any = None, *_args: Any, **more: Any) -> Any:
        return self._handle_tool_execution("send_money", {"to": "ann"}, {"send_money": send_money.run})


@tool
def send_money(to: str) -> str:
    """Send money to somebody."""
    return pay(to)


def make_payer(*tools: Any, model: type[BaseLLM] = Asker) -> Agent:
    """Return an agent that pays."""
    return Agent(
        role="payer", goal="Pay.", backstory="Pays.", tools=list(tools or [send_money]), llm=model(model="player")
    )


async def run(payer: Agent, to: str) -> str:
    """Let an agent pay."""
    return str((await payer.kickoff_async(to)).raw)


async def in_words(to: str) -> str:
    """Pay through an agent whose model has no function calling."""
    return await run(make_payer(model=Writer), to)


async def crew(to: str) -> str:
    """Pay through a crew."""
    payer = make_payer()
    task = Task(description="Pay.", expected_output="A receipt.", agent=payer)
    return str((await Crew(agents=[payer], tasks=[task]).kickoff_async()).raw)


async def by_client(to: str) -> str:
    """Pay through the client of a model, which runs functions."""
    return str(Doer(model="player").call(to))


async def by_code(to: str) -> str:
    """Pay as this code says."""
    return str(send_money.run(to=to))


def make(function: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    made = function if function is send_money else tool(function)
    return gate(lambda: make_payer(made), name="bot")


async def main() -> dict[str, Any]:
    """Play each variant."""
    payers = Payers("crewai", make_payer, run, make, send_money, tool("send_money")(send_gated))
    more = (in_words, crew, by_client, by_code)
    executor = sys.modules["crewai.agents.agent_executor"]
    executor.__name__ = "crewai.agents.agent_executor"  # CrewAI gives it that of another module
    guarded = (tool_hooks, executor, tool_utils, BaseLLM, LLM)
    return await play_variants(payers, more, guarded, (tool_hooks, "run_before_tool_call_hooks"))


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # it prints what its agents do
        results = asyncio.run(main())
    print_json(results)
