"""An AutoGen agent."""

import json
from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from sayso.adapters.autogen import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted

INFO = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)


class Player(ReplayChatCompletionClient):
    """Fetches one thing after another."""

    def __init__(self, reports: bool) -> None:
        super().__init__([], INFO)
        self._create_args = {"model": "player-1"}
        self._used = (GIVEN, MADE) if reports else (0, 0)

    async def create(self, messages: Sequence[Any], **_more: Any) -> CreateResult:
        turn = sum(isinstance(one, AssistantMessage) for one in messages)
        usage = RequestUsage(*self._used)
        if turn == CALLS:
            return CreateResult(finish_reason="stop", content="done", usage=usage, cached=False)
        call = FunctionCall(id=f"c{turn}", name="fetch", arguments=json.dumps({"what": str(turn)}))
        return CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)


def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


def make(reports: bool) -> FrameworkAgent:
    """Return an agent."""

    def build(gated: Any) -> Any:
        return gated(AssistantAgent("bot", model_client=Player(reports), tools=[fetch], max_tool_iterations=9))

    return gate(build, name="bot")


if __name__ == "__main__":
    print_counted(make)
