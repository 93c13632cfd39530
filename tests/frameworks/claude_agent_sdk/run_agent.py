"""An agent of the Claude Agent SDK with the desk's hook: `python -m ….run_agent WAIT_S SESSION [resume]`."""

import asyncio
import sys
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, query

from sayso.adapters.hooks.judging import HookOptions
from sayso.adapters.hooks.sdk import make_hook
from sayso.client import AsyncClient


async def main(wait_s: float, session: str, *resume: str) -> None:
    """Run one prompt to its end."""
    async with AsyncClient() as desk:
        matcher: Any = HookMatcher(hooks=[make_hook(desk, HookOptions(wait_s))], timeout=wait_s + 60)
        begun = {"resume": session} if resume else {"session_id": session}
        options = ClaudeAgentOptions(hooks={"PreToolUse": [matcher]}, setting_sources=[], **begun)
        async for message in query(prompt="go", options=options):
            print(type(message).__name__, flush=True)


asyncio.run(main(float(sys.argv[1]), *sys.argv[2:]))
