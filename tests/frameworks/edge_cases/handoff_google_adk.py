"""A Google ADK agent that calls a tool, and one that hands off to a sub-agent that does."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

from sayso.adapters.google_adk import gate
from tests.frameworks.edge_cases.local_runs import find_callers, print_json


class Asker(BaseLlm):
    """Requests one call."""

    model: str = "player"
    tool: str
    args: dict[str, Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        call = types.FunctionCall(name=self.tool, args=self.args)
        yield LlmResponse(content=types.ModelContent([types.Part(function_call=call)]))


def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


async def main() -> None:
    """Start both."""
    fetcher = Asker(tool="fetch", args={"what": "a"})
    alone = LlmAgent(name="alone", model=fetcher, tools=[fetch])
    writer = LlmAgent(name="writer", model=fetcher, tools=[fetch])
    boss = Asker(tool="transfer_to_agent", args={"agent_name": "writer"})
    handed = LlmAgent(name="boss", model=boss, tools=[fetch], sub_agents=[writer])
    print_json(
        {
            "alone": await find_callers(gate(alone, name="alone")),
            "handed": await find_callers(gate(handed, name="handed")),
        }
    )


if __name__ == "__main__":
    asyncio.run(main())
