"""The benchmark's agent, with one tool that reports its start."""

from benchmarks.clients import stamp
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from sayso.runner.tools import tool


@tool(name="refund")
async def refund(name: str, note: str, amount: float) -> None:
    """Report that the call `name` starts."""
    stamp(name)


bench = Agent(name="bench", instructions="", tools=(refund,), model=ScriptedModel([]))
