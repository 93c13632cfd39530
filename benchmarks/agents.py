"""The benchmark's agent: one tool that says when it starts, and does nothing else."""

from benchmarks.clients import stamp
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from sayso.runner.tools import tool


@tool(name="refund")
async def refund(name: str, note: str, amount: float) -> None:
    """Say that the call of that name starts."""
    stamp(name)


bench = Agent(name="bench", instructions="", tools=(refund,), model=ScriptedModel([]))
