"""The `tool` of Microsoft's Agent Framework over `gate`."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    Message,
    tool,
)

from tests.frameworks.decorators.gates import Till, play_gates
from tests.frameworks.edge_cases.local_runs import print_json


class Payer(FunctionInvocationLayer, BaseChatClient):
    """Requests one transfer, then repeats its result."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_more: Any) -> Any:
        last = messages[-1].contents[-1]
        if last.type == "function_result":
            return ChatResponse(messages=[Message("assistant", [str(last.result)])])
        call = Content.from_function_call("c0", "send_money", arguments={"to": "ann"})
        return ChatResponse(messages=[Message("assistant", [call])])


async def run(function: Any) -> Any:
    """Let an agent call the tool."""
    return (await Agent(client=Payer(), tools=[tool(name="send_money")(function)]).run("Pay.")).text


def add_context(till: Till) -> Mapping[str, Callable[[], Any]]:
    """Return functions that take the call's context."""

    def send_money(to: str, ctx: FunctionInvocationContext) -> str:
        """Send money to somebody."""
        return till.send(to)

    async def later(to: str, ctx: FunctionInvocationContext) -> str:
        """Send money to somebody."""
        return till.send(to if ctx.function.name == "send_money" else "nobody")

    return {"with context": lambda: till.gate(send_money), "async with context": lambda: till.gate(later)}


if __name__ == "__main__":
    print_json(asyncio.run(play_gates(run, add_context, tool)))
