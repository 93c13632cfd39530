"""An MCP client that executes requests from stdin, a line of JSON each.

`python -m tests.frameworks.mcp.clients MODE PROGRAM …` starts the proxy and connects to it. In the mode `tasks` it
takes tasks. Results and progress are printed as they arrive.
"""

import asyncio
import json
import os
import sys
from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.frameworks.mcp.polling import TakesTasks, TaskRequest, TaskState

CALLS: dict[int, asyncio.Task[None]] = {}


def print_line(**fields: Any) -> None:
    """Print one line."""
    print(json.dumps(fields), flush=True)


async def call(client: Client, request: dict[str, Any]) -> None:
    """Make a call. With the action `once`, `input_required` or a task counts as a response."""
    number = request["id"]

    async def report_progress(_: float, __: float | None, message: str | None) -> None:
        print_line(id=number, progress=message)

    try:
        if request["action"] == "once":
            state = request.get("state")
            result: Any = await client.session.call_tool(
                request["tool"],
                request["args"],
                request_state=state,
                allow_input_required=True,
                allow_claimed=True,
            )
        else:
            result = await client.call_tool(
                request["tool"], request["args"], progress_callback=report_progress, meta=request.get("meta")
            )
    except Exception as error:  # noqa: BLE001 - reported to the test
        print_line(id=number, raised=str(error))
        return
    print_line(id=number, result=result.model_dump(mode="json", exclude_none=True))


async def send_task_request(client: Client, request: dict[str, Any]) -> None:
    """Send `tasks/get`, `tasks/update` or `tasks/cancel`."""
    params = types.GetTaskRequestParams(task_id=request["task"])
    try:
        state = await client.session.send_request(TaskRequest(method=request["action"], params=params), TaskState)
    except MCPError as error:
        print_line(id=request["id"], code=error.code, raised=error.message)
        return
    print_line(id=request["id"], result=state.model_dump(mode="json", exclude_none=True))


async def augment(client: Client, request: dict[str, Any]) -> None:
    """Make a call that asks for an experimental task of 2025-11-25."""
    params = types.CallToolRequestParams(name=request["tool"], arguments=request["args"], task=types.TaskMetadata())
    result = await client.session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
    print_line(id=request["id"], result=result.model_dump(mode="json", exclude_none=True))


async def execute(client: Client, request: dict[str, Any]) -> None:
    """Execute one request."""
    if request["action"] == "cancel":
        CALLS[request["id"]].cancel()
    elif request["action"].startswith("tasks/"):
        CALLS[request["id"]] = asyncio.create_task(send_task_request(client, request))
    elif request["action"] == "augmented":
        CALLS[request["id"]] = asyncio.create_task(augment(client, request))
    elif request["action"] == "capabilities":
        print_line(id=request["id"], result=client.server_capabilities.model_dump(mode="json", exclude_none=True))
    elif request["action"] == "list":
        tools, resources = await client.session.list_tools(), await client.list_resources()
        read = await client.read_resource("note://one")
        print_line(
            id=request["id"],
            result=[tools.model_dump(), resources.model_dump(mode="json"), read.model_dump(mode="json")],
        )
    else:
        CALLS[request["id"]] = asyncio.create_task(call(client, request))


async def main() -> None:
    """Execute requests until stdin ends."""
    mode, program, *given = sys.argv[1:]
    server = StdioServerParameters(command=program, args=given, env=dict(os.environ))
    extensions = [TakesTasks()] if mode == "tasks" else []
    mode = "auto" if mode == "tasks" else mode
    async with Client(server, mode=mode, cache=None, extensions=extensions) as client:
        print_line(id=0, result=client.protocol_version)
        while line := await asyncio.to_thread(sys.stdin.readline):
            await execute(client, json.loads(line))


if __name__ == "__main__":
    asyncio.run(main())
