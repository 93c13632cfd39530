"""An OpenAI Agents SDK agent."""

from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Usage, function_tool
from agents.testing import assistant_message, function_call

from sayso.adapters.openai_agents import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted


def count(given: int, made: int) -> Usage:
    """Return the usage of one request."""
    return Usage(requests=1, input_tokens=given, output_tokens=made, total_tokens=given + made)


class Player(Model):
    """Fetches one thing after another."""

    def __init__(self, reports: bool, tool: str = "fetch") -> None:
        self.model = "player-1"
        self._reports, self._tool = reports, tool

    async def get_response(self, system_instructions: Any, input: Any, *_args: Any, **_more: Any) -> ModelResponse:
        turn = sum(one.get("type") == "function_call" for one in input if isinstance(one, dict))
        call = function_call(self._tool, {"input": str(turn)}, call_id=f"c{turn}")
        output: Any = call if turn < CALLS else assistant_message("done")
        used = count(GIVEN, MADE) if self._reports else Usage()
        return ModelResponse(output=[output], usage=used, response_id=None)

    def stream_response(self, *_args: Any, **_more: Any) -> Any:
        raise TypeError("This model does not stream.")


class Speaker(Player):
    """Answers at once."""

    async def get_response(self, *_args: Any, **_more: Any) -> ModelResponse:
        return ModelResponse(output=[assistant_message("fetched")], usage=count(7, 3), response_id=None)


@function_tool
def fetch(input: str) -> str:
    """Fetch something."""
    return f"fetched {input}"


SPEAKER = Agent("speaker", model=Speaker(True)).as_tool("ask_speaker", "Has an agent fetch something.")


def make(reports: bool, tool: FunctionTool = fetch) -> FrameworkAgent:
    """Return an agent."""
    agent = Agent("bot", model=Player(reports, tool.name), tools=[tool])
    return gate(agent, name="bot", run_config=RunConfig(tracing_disabled=True))


if __name__ == "__main__":
    print_counted(make, make(True, SPEAKER))
