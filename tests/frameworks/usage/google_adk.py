"""A Google ADK agent."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from sayso.adapters.google_adk import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted


def count(given: int, made: int) -> types.GenerateContentResponseUsageMetadata:
    """Return the usage of one request."""
    return types.GenerateContentResponseUsageMetadata(prompt_token_count=given, candidates_token_count=made)


class Player(BaseLlm):
    """Fetches one thing after another."""

    model: str = "player-1"
    reports: bool = True
    tool: str = "fetch"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        turn = sum(content.role == "model" for content in llm_request.contents)
        call = types.FunctionCall(id=f"c{turn}", name=self.tool, args={"request": str(turn)})
        part = types.Part(function_call=call) if turn < CALLS else types.Part(text="done")
        yield LlmResponse(
            content=types.ModelContent([part]), usage_metadata=count(GIVEN, MADE) if self.reports else None
        )


class Speaker(BaseLlm):
    """Answers at once."""

    model: str = "speaker"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.ModelContent("fetched"), usage_metadata=count(7, 3), model_version="speaker-1")


def fetch(request: str) -> str:
    """Fetch something."""
    return f"fetched {request}"


SPEAKER = AgentTool(LlmAgent(name="ask_speaker", description="Fetches something.", model=Speaker()))


def make(reports: bool, tool: Any = fetch) -> FrameworkAgent:
    """Return an agent."""
    name = tool.name if tool is SPEAKER else "fetch"
    return gate(LlmAgent(name="bot", model=Player(reports=reports, tool=name), tools=[tool]), name="bot")


if __name__ == "__main__":
    print_counted(make, make(True, SPEAKER))
