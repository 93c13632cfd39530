"""An agent of the Claude Agent SDK with the desk's hook: `python -m ….run_agent WAIT_S SESSION [resume [PROMPT]]`.

Without WAIT_S, the hook is that of the project's settings, and a session resumes without a prompt.
"""

import asyncio
import sys
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher

from sayso.adapters.hooks.judging import HookOptions
from sayso.adapters.hooks.sdk import make_hook
from sayso.client import AsyncClient
from tests.frameworks.claude_agent_sdk.bank import BANK


async def main(wait: str, session: str, resume: str = "", prompt: str = "") -> None:
    """Run one prompt to its end."""
    async with AsyncClient() as desk:
        wait_s = float(wait or 0)
        matcher: Any = HookMatcher(hooks=[make_hook(desk, HookOptions(wait_s))], timeout=wait_s + 60)
        waits: Any = {"hooks": {"PreToolUse": [matcher]}, "setting_sources": []}
        gated: Any = waits if wait else {"setting_sources": ["project"]}
        begun: Any = {"resume": session} if resume else {"session_id": session}
        async with ClaudeSDKClient(ClaudeAgentOptions(**gated, **begun, mcp_servers={"bank": BANK})) as claude:
            if prompt or wait or not resume:
                await claude.query(prompt or "go")
            async for message in claude.receive_response():
                print(message, flush=True)


asyncio.run(main(*sys.argv[1:]))
