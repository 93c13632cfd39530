"""An agent of the Claude Agent SDK with the desk's hook: `python -m ….run_agent WAIT_S SESSION [resume]`.

Without WAIT_S, the hook is that of the project's settings, and a session resumes without a prompt.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, query

from sayso.adapters.hooks.judging import HookOptions
from sayso.adapters.hooks.sdk import make_hook
from sayso.client import AsyncClient


async def give_nothing() -> AsyncIterator[Any]:
    """Be a prompt without messages."""
    messages: list[Any] = []
    for message in messages:
        yield message


async def main(wait: str, session: str, *resume: str) -> None:
    """Run one prompt to its end."""
    async with AsyncClient() as desk:
        wait_s = float(wait or 0)
        matcher: Any = HookMatcher(hooks=[make_hook(desk, HookOptions(wait_s))], timeout=wait_s + 60)
        hook = {"hooks": {"PreToolUse": [matcher]}, "setting_sources": []} if wait else {"setting_sources": ["project"]}
        begun = {"resume": session} if resume else {"session_id": session}
        options = ClaudeAgentOptions(**hook, **begun)
        prompt: Any = "go" if wait or not resume else give_nothing()
        async for message in query(prompt=prompt, options=options):
            print(type(message).__name__, flush=True)


asyncio.run(main(*sys.argv[1:]))
