"""One file a way in which a run goes on, and the table that leads to it."""

from collections.abc import Awaitable, Callable, Mapping

from sayso.runner.agents import Agent
from service.wiring import Wiring
from workers.resume.plans import Taken
from workers.resumers import calls, frameworks, runner

Resumer = Callable[[Wiring, Mapping[str, Agent], Taken], Awaitable[None]]

FRAMEWORKS = ("afk", "autogen", "langgraph", "openai_agents", "parsimony", "pydantic_ai")
"""Frameworks whose agents a worker drives; what differs between them is in `sayso/adapters/`, a file each."""

RESUMERS: Mapping[str, Resumer] = {
    "runner": runner.resume,
    "calls": calls.resume,
    **dict.fromkeys(FRAMEWORKS, frameworks.resume),
}
"""`resume.resumer` of a suspension -> what drives it."""
