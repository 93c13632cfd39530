"""An agent of Agent Framework."""

from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    UsageDetails,
    tool,
)

from sayso.adapters.agent_framework import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted


class Player(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Fetches one thing after another."""

    def __init__(self, reports: bool) -> None:
        super().__init__()
        self._reports = reports

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_more: Any) -> Any:
        turn = sum(one.type == "function_call" for message in messages for one in message.contents)
        call = Content.from_function_call(f"c{turn}", "fetch", arguments={"what": str(turn)})
        used = UsageDetails(input_token_count=GIVEN, output_token_count=MADE) if self._reports else None
        message = Message("assistant", [call if turn < CALLS else "done"])
        return ChatResponse(messages=[message], usage_details=used, model="player-1")


@tool
def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


def make(reports: bool) -> FrameworkAgent:
    """Return an agent."""
    return gate(Agent(client=Player(reports), tools=[fetch]), name="bot")


if __name__ == "__main__":
    print_counted(make)
