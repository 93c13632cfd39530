"""A CrewAI agent."""

import json
import os
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool

from sayso.adapters.crewai import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted


class Player(BaseLLM):
    """Fetches one thing after another."""

    reports: bool = True

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *_args: Any, **_more: Any) -> Any:
        if self.reports:
            self._track_token_usage_internal({"prompt_tokens": GIVEN, "completion_tokens": MADE})
        turn = sum(sent["role"] == "assistant" for sent in messages)
        arguments = json.dumps({"what": str(turn)})
        return [{"id": f"c{turn}", "function": {"name": "fetch", "arguments": arguments}}] if turn < CALLS else "done"


@tool
def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


def make(reports: bool) -> FrameworkAgent:
    """Return an agent."""
    model = Player(model="player-1", reports=reports)
    return gate(lambda: Agent(role="a", goal="b", backstory="c", tools=[fetch], llm=model), name="bot")


if __name__ == "__main__":
    print_counted(make)
