"""A deepagents agent behind the gate: with its `task` tool it is refused, without it by a profile it runs."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deepagents import (
    FilesystemMiddleware,
    GeneralPurposeSubagentProfile,
    HarnessProfile,
    create_deep_agent,
    register_harness_profile,
)
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.tools import tool

from sayso.adapters.langgraph import gate, sqlite
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.langgraph import Asker, called
from tests.frameworks.edge_cases.local_runs import play, print_json, refusal
from tests.sayso.runners import approve

RAN: list[str] = []
BUILT_IN = [*FilesystemMiddleware().tools, *TodoListMiddleware().tools]


@tool
def send_money(to: str) -> str:
    """Send money to somebody."""
    RAN.append(to)
    return f"sent to {to}"


def make(folder: str) -> FrameworkAgent:
    """Return a gated deep agent that sends money and reads a file."""
    turns = [[called("send_money", "c1", to="ann")], [called("ls", "c2", path="/")]]

    def build(*, checkpointer: Any, middleware: Any) -> Any:
        return create_deep_agent(Asker(turns=turns), [send_money], middleware=middleware, checkpointer=checkpointer)

    return gate(build, name="bot", tools=[send_money, *BUILT_IN], checkpointer=sqlite(Path(folder) / "threads.db"))


async def main() -> None:
    """Print what happened."""
    with TemporaryDirectory() as folder:
        refused = refusal(lambda: make(folder))
        without_task = HarnessProfile(general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False))
        register_harness_profile("asker", without_task)
        played = await play(make(folder), approve)
        print_json({"refused": refused, "played": played, "ran": RAN})


if __name__ == "__main__":
    asyncio.run(main())
