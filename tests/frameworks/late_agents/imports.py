"""A tool of Sayso's own runner that imports a framework only when it runs, in the framework's environment."""

import asyncio
import contextlib
import sys
from importlib import import_module
from importlib.util import find_spec

from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import play_own

PACKAGES = {
    "pydantic_ai": "pydantic_ai",
    "openai_agents": "agents",
    "agent_framework": "agent_framework",
    "autogen": "autogen_agentchat",
    "langgraph": "langchain_core",
    "parsimony": "parsimony_agents",
    "google_adk": "google.adk",
    "crewai": "crewai",
}


def is_there(package: str) -> bool:
    """Return whether a package is installed; importing nothing of it."""
    outer = package.partition(".")[0]
    return find_spec(outer) is not None and find_spec(package) is not None


FRAMEWORK = next((name for name, package in PACKAGES.items() if is_there(package)), "afk")


async def imported(to: str) -> str:
    """Pay through an agent of a framework that was not imported before."""
    payers = import_module(f"tests.frameworks.late_agents.{FRAMEWORK}")
    return str(await payers.run(payers.make_payer(), to))


async def main() -> None:
    """Play it."""
    assert not {*PACKAGES.values(), "afk"} & sys.modules.keys()
    with contextlib.redirect_stdout(sys.stderr):  # CrewAI prints what its agents do
        played = await play_own([imported])
    print_json({"own": played})


if __name__ == "__main__":
    asyncio.run(main())
