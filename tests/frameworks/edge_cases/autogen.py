"""AutoGen agents with very long and repeated call ids."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination
from autogen_agentchat.teams import Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, FunctionExecutionResultMessage, ModelInfo, RequestUsage
from autogen_core.tools import FunctionTool
from autogen_ext.models.replay import ReplayChatCompletionClient

from sayso.adapters.autogen import DESK, gate
from tests.frameworks.edge_cases.local_runs import LONG_ID, play, print_json, refusal

INFO = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
NO_USAGE = RequestUsage(prompt_tokens=0, completion_tokens=0)
IDS: list[str] = []


class Asker(ReplayChatCompletionClient):
    """Requests two calls, then repeats their results."""

    async def create(self, messages: Sequence[Any], **_more: Any) -> CreateResult:
        if not isinstance(messages[-1], FunctionExecutionResultMessage):
            calls = [FunctionCall(id=LONG_ID, name="fetch", arguments=json.dumps({"what": what})) for what in "ab"]
            return CreateResult(finish_reason="function_calls", content=calls, usage=NO_USAGE, cached=False)
        results = messages[-1].content
        IDS.extend(one.call_id for one in results)
        text = " | ".join(one.content for one in results)
        return CreateResult(finish_reason="stop", content=text, usage=NO_USAGE, cached=False)


def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


async def main() -> None:
    """Play the agent."""

    def build(gated: Any) -> Any:
        return gated(AssistantAgent("bot", model_client=Asker([], INFO), tools=[fetch], max_tool_iterations=5))

    def build_two(gated: Any) -> Any:
        words = ("Fetch something.", "Fetch it from elsewhere.")
        tools = [FunctionTool(fetch, description=one) for one in words]
        agents = [gated(AssistantAgent(f"bot{at}", Asker([], INFO), tools=[one])) for at, one in enumerate(tools)]
        return Swarm(agents, termination_condition=HandoffTermination(DESK))

    results = await play(gate(build, name="bot"))
    two = refusal(lambda: gate(build_two, name="bot"))
    print_json({"result": results["result"], "under its own ids": set(IDS) == {LONG_ID}, "two": two})


if __name__ == "__main__":
    asyncio.run(main())
