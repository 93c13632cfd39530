"""An MCP server to stand in front of: `python -m tests.frameworks.mcp.servers [port]`; BOT_HOME has what it did.

A file `changed` there has it describe its tools otherwise from then on; `die` ends it in the middle of a call.
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
    """List the tools, a page each."""
    more = " More than before." if (HOME / "changed").exists() else ""
    if params is None or params.cursor is None:
        hints = types.ToolAnnotations(read_only_hint=True)
        looks = types.Tool(name="look_up", description="Look.", input_schema={"type": "object"}, annotations=hints)
        return types.ListToolsResult(tools=[looks], next_cursor="2")
    pays = types.Tool(
        name="send_money", description=f"Send money.{more}", input_schema=MONEY, output_schema={"type": "object"}
    )
    return types.ListToolsResult(tools=[pays])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Note what is done, and do it."""
    args = params.arguments or {}
    done = {"tool": params.name, "args": args, "meta": dict(params.meta or {}), "key": "SAYSO_KEY" in os.environ}
    with (HOME / "effects.jsonl").open("a") as file:
        file.write(json.dumps(done) + "\n")
    if args.get("to") == "die":
        os._exit(3)
    if args.get("to") == "slow":
        await ctx.session.report_progress(1, 2, "half way")
        await asyncio.Event().wait()
    if args.get("to") == "broke":
        raise MCPError(types.CONNECTION_CLOSED, "no money left")  # the number many servers give any error of theirs
    if args.get("to") == "nobody":
        return types.CallToolResult(content=[types.TextContent(type="text", text="no such person")], is_error=True)
    text = types.TextContent(type="text", text=f"{params.name} done")
    return types.CallToolResult(content=[text], structured_content={"sent": args.get("amount", 0)})


async def list_resources(_: Any, params: Any) -> types.ListResourcesResult:
    """List something that is no tool."""
    return types.ListResourcesResult(resources=[types.Resource(uri="note://one", name="one")])


async def read_resource(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Read it."""
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
    """Serve at standard input and output, or at a port."""
    if len(sys.argv) > 1:
        config = uvicorn.Config(SERVER.streamable_http_app(), port=int(sys.argv[1]), log_level="error")
        await uvicorn.Server(config).serve()
        return
    async with stdio_server() as (reading, writing):
        await SERVER.run(reading, writing, SERVER.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
