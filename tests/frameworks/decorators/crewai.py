"""CrewAI's `tool` over `gate`."""

import asyncio
import contextlib
import os
import sys
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool

from tests.frameworks.decorators.gates import play_gates
from tests.frameworks.edge_cases.local_runs import print_json


class Payer(BaseLLM):
    """Requests one transfer, then repeats its result."""

    def call(self, messages: Any, *_args: Any, **_more: Any) -> str:
        results = [sent["content"].rpartition("Observation:")[2] for sent in messages if sent["role"] == "assistant"]
        if results:
            return f"Thought: I now know the final answer\nFinal Answer: {results[0].strip()}"
        return 'Thought: Pay.\nAction: send_money\nAction Input: {"to": "ann"}'

    async def acall(self, messages: Any, *args: Any, **more: Any) -> str:
        return self.call(messages, *args, **more)


async def run(function: Any) -> Any:
    """Let an agent call the tool."""
    made = tool("send_money")(function)
    agent = Agent(role="payer", goal="Pay.", backstory="Pays.", tools=[made], llm=Payer(model="played"), verbose=False)
    return (await agent.kickoff_async("Pay.")).raw


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # it prints what its agents do
        results = asyncio.run(play_gates(run, decorate=tool("send_money")))
    print_json(results)
