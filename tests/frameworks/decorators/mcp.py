"""The MCP SDK's `server.tool` over `gate`."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from tests.frameworks.decorators.gates import Till, play_gates
from tests.frameworks.edge_cases.local_runs import print_json


async def run(function: Any) -> Any:
    """Let a client call the tool."""
    server = MCPServer("bank")
    server.tool("send_money")(function)
    async with Client(server) as client:
        return (await client.call_tool("send_money", {"to": "ann"})).content[0].text


def add_context(till: Till) -> Mapping[str, Callable[[], Any]]:
    """Return a function that takes the request's context."""

    async def later(to: str, ctx: Context[Any, Any]) -> str:
        """Send money to somebody."""
        return till.send(to if ctx.request_id is not None else "nobody")

    return {"with context": lambda: till.gate(later)}


if __name__ == "__main__":
    print_json(asyncio.run(play_gates(run, add_context, MCPServer("bank").tool())))
