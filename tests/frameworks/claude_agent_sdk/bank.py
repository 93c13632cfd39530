"""The tools of an agent: a server in its process."""

import asyncio
from typing import Any

from claude_agent_sdk import create_sdk_mcp_server, tool

from tests.frameworks.bots.effects import record_effect


async def _record(tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
    """Record the call in a thread, where a test may hold it."""
    text = await asyncio.to_thread(record_effect, tool_name, **args)
    return {"content": [{"type": "text", "text": text}]}


@tool("send_money", "Send money to somebody.", {"to": str, "amount": int})
async def send_money(args: Any) -> dict[str, Any]:
    return await _record("send_money", args)


@tool("send_mail", "Send a mail to somebody.", {"to": str, "text": str})
async def send_mail(args: Any) -> dict[str, Any]:
    return await _record("send_mail", args)


@tool("look_up", "Look something up.", {"what": str})
async def look_up(args: Any) -> dict[str, Any]:
    return await _record("look_up", args)


BANK = create_sdk_mcp_server("bank", tools=[send_money, send_mail, look_up])
