"""AutoGen's `FunctionTool` over `gate`."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import CreateResult, FunctionExecutionResultMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.replay import ReplayChatCompletionClient

from tests.frameworks.decorators.gates import Till, play_gates
from tests.frameworks.edge_cases.autogen import INFO, NO_USAGE
from tests.frameworks.edge_cases.local_runs import print_json


class Payer(ReplayChatCompletionClient):
    """Requests one transfer, then repeats its result."""

    async def create(self, messages: Sequence[Any], **_more: Any) -> CreateResult:
        if isinstance(messages[-1], FunctionExecutionResultMessage):
            text = messages[-1].content[0].content
            return CreateResult(finish_reason="stop", content=text, usage=NO_USAGE, cached=False)
        call = FunctionCall(id="c0", name="send_money", arguments=json.dumps({"to": "ann"}))
        return CreateResult(finish_reason="function_calls", content=[call], usage=NO_USAGE, cached=False)


def decorate(function: Any) -> FunctionTool:
    """Return a tool of the function."""
    return FunctionTool(function, name="send_money", description="Send money to somebody.")


async def run(function: Any) -> Any:
    """Let an agent call the tool."""
    agent = AssistantAgent("bot", Payer([], INFO), tools=[decorate(function)], reflect_on_tool_use=True)
    return (await agent.run(task="Pay.")).messages[-1].to_text()


def add_context(till: Till) -> Mapping[str, Callable[[], Any]]:
    """Return a function that takes the token to cancel it."""

    async def later(to: str, cancellation_token: CancellationToken) -> str:
        """Send money to somebody."""
        return till.send("nobody" if cancellation_token.is_cancelled() else to)

    return {"with context": lambda: till.gate(later)}


if __name__ == "__main__":
    print_json(asyncio.run(play_gates(run, add_context, decorate)))
