"""A Pydantic AI agent; its framework estimates the tokens of a test model that reports none."""

from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from sayso.adapters.pydantic_ai import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE, print_counted


def fetch(what: str) -> str:
    """Fetch something."""
    return f"fetched {what}"


async def ask_speaker(ctx: RunContext[Any], what: str) -> str:
    """Have an agent of another model fetch it."""
    return str((await SPEAKER.run(what, usage=ctx.usage)).output)


def make(reports: bool, tool: Any = fetch) -> FrameworkAgent:
    """Return an agent that fetches one thing after another."""
    usage = RequestUsage(input_tokens=GIVEN, output_tokens=MADE) if reports else RequestUsage(unmeasured_requests=1)

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(one, ModelResponse) for one in messages)
        part = ToolCallPart(tool.__name__, {"what": str(turn)}, f"c{turn}") if turn < CALLS else TextPart("done")
        return ModelResponse([part], usage=usage)

    return gate(Agent(FunctionModel(answer, model_name="player-1"), tools=[tool]), name="bot")


def speak(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Answer at once."""
    return ModelResponse([TextPart("fetched")], usage=RequestUsage(input_tokens=7, output_tokens=3))


SPEAKER = Agent(FunctionModel(speak, model_name="speaker-1"))


if __name__ == "__main__":
    print_counted(make, make(True, ask_speaker))
