"""An MCP client that executes orders from stdin, a line of JSON each.

`python -m tests.frameworks.mcp.clients MODE PROGRAM …` starts the proxy and connects to it. Results and progress are
printed as they arrive.
"""

import asyncio
import json
import os
import sys
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

DOING: dict[int, asyncio.Task[None]] = {}


def print_json(**results: Any) -> None:
    """Print one line."""
    print(json.dumps(results), flush=True)


async def call(client: Client, order: dict[str, Any]) -> None:
    """Make a call. With `once`, `input_required` counts as a response."""
    number = order["id"]

    async def tell(_: float, __: float | None, message: str | None) -> None:
        print_json(id=number, progress=message)

    try:
        if order["do"] == "once":
            state = order.get("state")
            result: Any = await client.session.call_tool(
                order["tool"], order["args"], request_state=state, allow_input_required=True
            )
        else:
            result = await client.call_tool(order["tool"], order["args"], progress_callback=tell)
    except Exception as error:  # noqa: BLE001 - reported to the test
        print_json(id=number, raised=str(error))
        return
    print_json(id=number, result=result.model_dump(mode="json", exclude_none=True))


async def obey(client: Client, order: dict[str, Any]) -> None:
    """Execute one order."""
    if order["do"] == "cancel":
        DOING[order["id"]].cancel()
    elif order["do"] == "look":
        tools, resources = await client.session.list_tools(), await client.list_resources()
        read = await client.read_resource("note://one")
        print_json(
            id=order["id"], result=[tools.model_dump(), resources.model_dump(mode="json"), read.model_dump(mode="json")]
        )
    else:
        DOING[order["id"]] = asyncio.create_task(call(client, order))


async def main() -> None:
    """Execute orders until stdin ends."""
    mode, program, *given = sys.argv[1:]
    server = StdioServerParameters(command=program, args=given, env=dict(os.environ))
    async with Client(server, mode=mode, cache=None) as client:
        print_json(id=0, result=client.protocol_version)
        while line := await asyncio.to_thread(sys.stdin.readline):
            await obey(client, json.loads(line))


if __name__ == "__main__":
    asyncio.run(main())
