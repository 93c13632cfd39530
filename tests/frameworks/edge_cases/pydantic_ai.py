"""Pydantic AI agents with results that are not JSON, and with edited calls."""

import asyncio
from typing import Any

from pydantic_ai import Agent, BinaryContent, ToolReturn
from pydantic_ai.capabilities import Toolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from sayso.adapters.pydantic_ai import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import LONG_ID, play, print_json, refusal
from tests.sayso.runners import approve

RETURNS: dict[str, Any] = {
    "bytes": b"\xff\xfe",
    "image": BinaryContent(b"\x89PNG", media_type="image/png"),
    "note": ToolReturn("noted", content=["Look at this."]),
}


def make(*calls: ToolCallPart, **options: Any) -> tuple[FrameworkAgent, list[str]]:
    """Return an agent that requests these calls at once, and the list of results that it gets."""
    results: list[str] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(calls)
        results.extend(f"{type(part.content).__name__}: {part.content}" for part in messages[-1].parts)
        return ModelResponse([TextPart("done")])

    agent = Agent(FunctionModel(answer), **options)

    @agent.tool_plain
    def fetch(what: str) -> Any:
        """Fetch something."""
        return RETURNS.get(what, what)

    return gate(agent, name="bot"), results


def fetch(what: str, call_id: str = "c0") -> ToolCallPart:
    return ToolCallPart("fetch", {"what": what}, call_id)


async def main() -> None:
    """Play each agent."""
    results = {}
    for what in RETURNS:
        bot, results[what] = make(fetch(what))
        await play(bot)
    bot, results["edited"] = make(fetch("all"))
    await play(bot, lambda ask: approve(ask, what="less"))
    bot, results["long id"] = make(fetch("it", LONG_ID))
    await play(bot)
    outside = ExternalToolset([ToolDefinition(name="ask_client")])
    brings = Toolset(FunctionToolset([sum]))
    print_json(
        {
            "results": results,
            "external": refusal(lambda: make(toolsets=[outside])),
            "capability": refusal(lambda: make(capabilities=[brings])),
        }
    )


if __name__ == "__main__":
    asyncio.run(main())
