"""A LangGraph graph that interrupts for a call, and one whose inner graph does."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from sayso.adapters.langgraph import gate, sqlite
from sayso.core.records.tools import ToolDefinition
from tests.frameworks.edge_cases.local_runs import find_callers, print_json

FETCH = ToolDefinition(name="fetch", parameters={"type": "object", "properties": {"what": {"type": "string"}}})


def ask(_state: MessagesState) -> dict[str, Any]:
    """Interrupt for one call, like Agent Inbox's graphs."""
    config = {"allow_accept": True, "allow_ignore": True, "allow_respond": True, "allow_edit": True}
    interrupt({"action_request": {"action": "fetch", "args": {"what": "a"}}, "config": config})
    return {}


def draw(node: Any, name: str) -> Any:
    """Return an uncompiled graph with one node."""
    graph = StateGraph(MessagesState)
    graph.add_node(name, node)
    graph.add_edge(START, name)
    return graph


async def main() -> None:
    """Start both."""

    def build(*, checkpointer: Any, middleware: Sequence[Any]) -> Any:
        return draw(ask, "ask").compile(checkpointer=checkpointer)

    def build_nested(*, checkpointer: Any, middleware: Sequence[Any]) -> Any:
        return draw(draw(ask, "ask").compile(), "writer").compile(checkpointer=checkpointer)

    def build_deep(*, checkpointer: Any, middleware: Sequence[Any]) -> Any:
        inner = draw(draw(ask, "ask").compile(), "web").compile()
        return draw(inner, "research").compile(checkpointer=checkpointer)

    with tempfile.TemporaryDirectory() as home:
        kept = sqlite(Path(home) / "threads.db")
        alone = gate(build, name="alone", tools=[FETCH], checkpointer=kept)
        handed = gate(build_nested, name="handed", tools=[FETCH], checkpointer=kept)
        deep = gate(build_deep, name="deep", tools=[FETCH], checkpointer=kept)
        assert await find_callers(deep) == [["fetch", "research/web"]]
        print_json({"alone": await find_callers(alone), "handed": await find_callers(handed)})


if __name__ == "__main__":
    asyncio.run(main())
