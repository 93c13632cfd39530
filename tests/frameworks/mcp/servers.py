"""An MCP server for the proxy: `python -m tests.frameworks.mcp.servers [port]`. It records its effects in BOT_HOME.

A file `changed` there changes the description of its tools. A call to `die` ends it. One to `gate` waits for a file
`open`.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

HOME = Path(os.environ["BOT_HOME"])
MONEY = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}}}


async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """List one tool per page."""
    more = " More than before." if (HOME / "changed").exists() else ""
    if params is None or params.cursor is None:
        hints = types.ToolAnnotations(read_only_hint=True)
        look_up = types.Tool(name="look_up", description="Look.", input_schema={"type": "object"}, annotations=hints)
        return types.ListToolsResult(tools=[look_up], next_cursor="2")
    send_money = types.Tool(
        name="send_money", description=f"Send money.{more}", input_schema=MONEY, output_schema={"type": "object"}
    )
    return types.ListToolsResult(tools=[send_money])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Record the call and run it."""
    args = params.arguments or {}
    done = {"tool": params.name, "args": args, "meta": dict(params.meta or {}), "key": "SAYSO_KEY" in os.environ}
    with (HOME / "effects.jsonl").open("a") as file:
        file.write(json.dumps(done) + "\n")
    if args.get("to") == "die":
        os._exit(3)
    if args.get("to") == "slow":
        await ctx.session.report_progress(1, 2, "half way")
        await asyncio.Event().wait()
    while args.get("to") == "gate" and not (HOME / "open").exists():  # noqa: ASYNC110  another process makes the file
        await asyncio.sleep(0.05)  # between polls
    if args.get("to") == "broke":
        raise MCPError(types.CONNECTION_CLOSED, "no money left")  # a code that many servers use for any error
    if args.get("to") == "nobody":
        return types.CallToolResult(content=[types.TextContent(type="text", text="no such person")], is_error=True)
    text = types.TextContent(type="text", text=f"{params.name} done")
    return types.CallToolResult(content=[text], structured_content={"sent": args.get("amount", 0)})


async def list_resources(_: Any, params: Any) -> types.ListResourcesResult:
    """List a resource."""
    return types.ListResourcesResult(resources=[types.Resource(uri="note://one", name="one")])


async def read_resource(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Read the resource."""
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="a note")])


SERVER: Server[Any] = Server(
    "bank",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
)


async def main() -> None:
    """Serve on stdin and stdout, or on a port."""
    if len(sys.argv) > 1:
        config = uvicorn.Config(SERVER.streamable_http_app(), port=int(sys.argv[1]), log_level="error")
        await uvicorn.Server(config).serve()
        return
    async with stdio_server() as (reading, writing):
        await SERVER.run(reading, writing, SERVER.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
