"""A parsimony-agents agent; LiteLLM estimates the tokens of a model that reports none."""

import json
from collections.abc import AsyncIterator
from typing import Any

import litellm
from parsimony_agents import Agent
from parsimony_agents.tools import Tool, Tools

from sayso.adapters.parsimony import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted

USED = {"prompt_tokens": GIVEN, "completion_tokens": MADE, "total_tokens": GIVEN + MADE}
WHAT = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}


class Player(litellm.CustomLLM):
    """Fetches one thing after another."""

    def __init__(self, reports: bool) -> None:
        super().__init__()
        self._reports = reports

    async def astreaming(self, *_args: Any, **given: Any) -> AsyncIterator[Any]:
        turn = len([one for one in given["messages"] if one["role"] == "assistant"])
        name, args = ("fetch", {"what": str(turn)}) if turn < CALLS else ("return_done", {"summary": "done"})
        function = {"name": name, "arguments": json.dumps(args)}
        call = {"id": f"c{turn}", "type": "function", "function": function, "index": 0}
        usage = USED if self._reports else None
        yield {"text": "", "is_finished": False, "finish_reason": "", "index": 0, "tool_use": call, "usage": None}
        yield {
            "text": "",
            "is_finished": True,
            "finish_reason": "tool_calls",
            "index": 0,
            "tool_use": None,
            "usage": usage,
        }


litellm.suppress_debug_info = True
litellm.custom_provider_map = [
    {"provider": "player", "custom_handler": Player(True)},
    {"provider": "silent", "custom_handler": Player(False)},
]
litellm.utils.custom_llm_setup()


async def fetch(what: str, **_context: Any) -> str:
    """Fetch something."""
    return f"fetched {what}"


def make(reports: bool) -> FrameworkAgent:
    """Return an agent."""

    def build() -> Agent:
        agent = Agent(model="player/1" if reports else "silent/1", instructions="Play.", suspension_secret="s" * 32)
        tools = [Tool(fetch, "fetch", "Fetch something.", WHAT, "system")]
        agent.system_tools = agent.tools = agent.system_tools + Tools(tools)
        return agent

    return gate(build, name="bot")


if __name__ == "__main__":
    print_counted(make)
