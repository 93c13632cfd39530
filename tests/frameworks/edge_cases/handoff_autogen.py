"""An AutoGen agent that calls a tool, and a Swarm whose member does."""

import asyncio
from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination
from autogen_agentchat.teams import Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from sayso.adapters.autogen import DESK, gate
from tests.frameworks.edge_cases.local_runs import find_callers, print_json

INFO = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)


class Asker(ReplayChatCompletionClient):
    """Requests one call."""

    def __init__(self, tool: str, args: str) -> None:
        super().__init__([], INFO)
        self._call = FunctionCall(id="c1", name=tool, arguments=args)

    async def create(self, messages: Sequence[Any], **_more: Any) -> CreateResult:
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        return CreateResult(finish_reason="function_calls", content=[self._call], usage=usage, cached=False)


def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


def make_writer() -> AssistantAgent:
    """Return an assistant that requests a call of `fetch`."""
    return AssistantAgent("writer", model_client=Asker("fetch", '{"what": "a"}'), tools=[fetch])


async def main() -> None:
    """Start both."""

    def build(gated: Any) -> Any:
        return gated(make_writer())

    def build_team(gated: Any) -> Any:
        boss = AssistantAgent(
            "boss", model_client=Asker("transfer_to_writer", "{}"), tools=[fetch], handoffs=["writer"]
        )
        return Swarm([gated(boss), gated(make_writer())], termination_condition=HandoffTermination(DESK))

    alone, handed = gate(build, name="alone"), gate(build_team, name="handed")
    print_json({"alone": await find_callers(alone), "handed": await find_callers(handed)})


if __name__ == "__main__":
    asyncio.run(main())
