"""Many held calls of one proxy: `python -m tests.frameworks.mcp.held_calls COUNT`, then the same with `poll`.

The first holds the calls and prints their tasks, with its open connections to the desk. The second is another process:
it reads the tasks from stdin, polls each until it works no more, and prints how each ended and which calls ran.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import mcp_types as types
from mcp.client import Client
from mcp.server.lowlevel import Server

from sayso import AsyncClient
from sayso.adapters.mcp.calls import ProxyOptions
from sayso.adapters.mcp.proxies import Proxy
from tests.frameworks.mcp.polling import TakesTasks, read_task

AT_ONCE = 16
ESTABLISHED = "01"
RAN: Counter[int] = Counter()

T = TypeVar("T")
S = TypeVar("S")


async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
    """List the one tool."""
    return types.ListToolsResult(tools=[types.Tool(name="send_money", input_schema={"type": "object"})])


async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Count the call."""
    number = int((params.arguments or {})["amount"])
    RAN[number] += 1
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(number))])


SERVER: Server[Any] = Server("bank", on_list_tools=list_tools, on_call_tool=call_tool)


async def do_each(work: Callable[[T], Awaitable[S]], things: Iterable[T]) -> list[S]:
    """Do the work for each thing, some at once."""
    places = asyncio.Semaphore(AT_ONCE)

    async def do(thing: T) -> S:
        async with places:
            return await work(thing)

    return await asyncio.gather(*(do(thing) for thing in things))


def count_connections(url: str) -> int:
    """Return how many connections to the port of this URL are open, of all processes of the machine."""
    port = f"{urlsplit(url).port:04X}"
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port}") and row[3] == ESTABLISHED for row in rows)


async def main() -> None:
    """Hold the calls, or poll their tasks."""
    async with AsyncClient() as desk, Client(SERVER, cache=None) as backend:
        server = Proxy(backend, desk, ProxyOptions()).make_server()
        async with Client(server, cache=None, extensions=[TakesTasks()]) as client:

            async def hold(amount: int) -> str:
                args = {"to": "ann", "amount": amount}
                task: Any = await client.session.call_tool("send_money", args, allow_claimed=True)
                assert task.result_type == "task", task
                return str(task.task_id)

            async def settle(task_id: str) -> dict[str, Any]:
                while (state := await read_task(client.session, task_id)).status == "working":
                    pass
                return {"task": task_id, "status": state.status, "result": state.result}

            if sys.argv[1] == "poll":
                ended = await do_each(settle, json.load(sys.stdin))
                print(json.dumps({"ended": ended, "ran": RAN}))
            else:
                tasks = await do_each(hold, range(int(sys.argv[1])))
                print(json.dumps({"tasks": tasks, "connections": count_connections(os.environ["SAYSO_URL"])}))


if __name__ == "__main__":
    asyncio.run(main())
