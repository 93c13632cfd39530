"""The benchmark's agent, with one tool that reports its start."""

from benchmarks.clients import stamp
from sayso.core.records.tools import ToolDefinition
from sayso.runner.agents import Agent
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall
from sayso.runner.tools import tool


class OneCall:
    """A model that calls `refund` with its task as arguments, and ends its run after it."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the call, or the end once the call was answered."""
        if messages[-1]["role"] == "tool":
            return ModelTurn(text="done")
        return ModelTurn(calls=(RequestedCall(call_id="c1", name="refund", args_json=str(messages[-1]["content"])),))


@tool(name="refund")
async def refund(name: str, note: str, amount: float) -> None:
    """Report that the call `name` starts."""
    stamp(name)


bench = Agent(name="bench", instructions="", tools=(refund,), model=OneCall())
