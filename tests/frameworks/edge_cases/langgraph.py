"""LangChain agents with unknown tools, repeated call ids and ungated tools."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel

from sayso.adapters.langgraph import gate, sqlite
from sayso.adapters.langgraph.middleware import Mode
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import LONG_ID, play, print_json, refusal

RAN: list[str] = []


class Total(BaseModel):
    """The agent's structured response."""

    total: int


class Asker(BaseChatModel):
    """Requests the calls of its turns, then repeats their results."""

    turns: Any

    @property
    def _llm_type(self) -> str:
        return "asker"

    def bind_tools(self, *_args: Any, **_more: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_args: Any, **_more: Any) -> ChatResult:
        turn = sum(isinstance(one, AIMessage) for one in messages)
        results = " | ".join(str(one.content) for one in messages if isinstance(one, ToolMessage))
        message = AIMessage("", tool_calls=self.turns[turn]) if turn < len(self.turns) else AIMessage(results)
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def fetch(what: str) -> str:
    """Fetch something."""
    RAN.append(what)
    return f"fetched {what}"


@tool
def burn(what: str) -> str:
    """Burn something."""
    return f"burnt {what}"


def make(
    folder: str, turns: Any, tools: Any = (fetch,), mode: Mode = "batched", gated: Any = (fetch,), **options: Any
) -> FrameworkAgent:
    """Return an agent that requests these calls."""
    path = Path(folder) / f"{id(turns)}.db"

    def build(*, checkpointer: Any, middleware: Any) -> Any:
        return create_agent(Asker(turns=turns), tools, middleware=middleware, checkpointer=checkpointer, **options)

    return gate(build, name="bot", tools=gated, checkpointer=sqlite(path), interrupt_mode=mode)


def called(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id}


async def main() -> None:
    """Play each agent."""
    made_up = [[called("fly", "c0"), called("fetch", "c1", what="a")]]
    twice = [[called("fetch", "c0", what="b"), called("fetch", "c0", what="c")]]
    typed = [[called("fetch", LONG_ID, what="d")], [called("Total", "c1", total=3)]]
    both = [[called("burn", "c0", what="e"), called("fetch", "c1", what="f")]]
    with TemporaryDirectory() as folder:
        results = {
            "batched": await play(make(folder, made_up)),
            "per_call": await play(make(folder, made_up, mode="per_call")),
            "twice": await play(make(folder, twice)),
            "typed": await play(make(folder, typed, response_format=ToolStrategy(Total))),
            "later": await play(make(folder, both, (fetch, burn), gated=(fetch, burn)), later=make(folder, both)),
            "foreign": refusal(lambda: make(folder, made_up, tools=(fetch, burn))),
        }
    print_json({**results, "ran": RAN})


if __name__ == "__main__":
    asyncio.run(main())
