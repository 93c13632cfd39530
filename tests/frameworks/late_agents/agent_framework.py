"""Agents of Agent Framework that a gated tool gets only when it runs."""

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    tool,
)

from sayso.adapters.agent_framework import gate
from sayso.runner.protocol import FrameworkAgent
from tests.frameworks.edge_cases.local_runs import print_json
from tests.frameworks.late_agents.variants import Payers, pay, play_variants, send_gated


class Asker(FunctionInvocationLayer, BaseChatClient):
    """Requests one call of the only tool, then repeats its result."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_more: Any) -> Any:
        results = [str(one.result) for message in messages for one in message.contents if one.type == "function_result"]
        name = options["tools"][0].name if options.get("tools") else ""
        call = Content.from_function_call("c0", name, arguments={"to": "ann"})
        return ChatResponse(messages=[Message("assistant", [results[0] if results else call])])


@tool
def send_money(to: str) -> str:
    """Send money to somebody."""
    return pay(to)


def make_payer(*tools: Any) -> Agent[Any]:
    """Return an agent that pays."""
    return Agent(client=Asker(), name="payer", tools=list(tools or [send_money]))


async def run(payer: Agent[Any], to: str) -> str:
    """Let an agent pay."""
    return str((await payer.run(to)).text)


async def from_session(to: str, ctx: FunctionInvocationContext) -> str:
    """Pay through an agent that gets the run's session."""
    return str((await make_payer().run(to, session=ctx.session)).text)


async def with_tools(to: str) -> str:
    """Pay through an agent whose tools come with the run."""
    return str((await Agent(client=Asker(), name="payer").run(to, tools=[send_money])).text)


async def by_code(to: str) -> str:
    """Pay by a tool that this code calls itself."""
    return str(await send_money.invoke(arguments={"to": to}, skip_parsing=True))


def make(one: Any) -> FrameworkAgent:
    """Return a gated agent with this tool."""
    return gate(Agent(client=Asker(), tools=[one]), name="bot")


async def main() -> None:
    """Play each variant."""
    payers = Payers("agent_framework", make_payer, run, make, send_money, tool(send_gated))
    more = (from_session, with_tools, by_code)
    print_json(await play_variants(payers, more, (FunctionTool,), (FunctionTool, "invoke")))


if __name__ == "__main__":
    asyncio.run(main())
