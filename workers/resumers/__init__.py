"""One module per kind of run, and the table that selects it."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from sayso.runner.agents import Agent
from service.core.wiring import Wiring
from workers.resume.plans import LeasedRun
from workers.resumers import calls, runs

Resumer = Callable[[Wiring, Mapping[str, Agent], LeasedRun], Coroutine[Any, Any, None]]

FRAMEWORKS = ("afk", "autogen", "langgraph", "openai_agents", "parsimony", "pydantic_ai")
"""Frameworks whose agents a worker drives; each has an adapter in `sayso/adapters/`."""

RESUMERS: Mapping[str, Resumer] = {
    "runner": runs.resume,
    "calls": calls.resume,
    **dict.fromkeys(FRAMEWORKS, runs.resume),
}
"""`resume.resumer` of a suspension -> function that resumes it."""
