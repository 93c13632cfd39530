"""A hook for the Claude Agent SDK: `HookMatcher(hooks=[make_hook(desk)], timeout=600)` for `PreToolUse`."""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_core import to_json

from sayso.adapters.hooks.formats import read_call, write_answer
from sayso.adapters.hooks.judging import HookOptions, judge
from sayso.client import AsyncClient
from sayso.errors import InvalidInput, SaysoError

Hook = Callable[[Any, str | None, Any], Awaitable[Any]]


def make_hook(desk: AsyncClient, options: HookOptions | None = None) -> Hook:
    """Return a hook that lets the desk judge each call, and denies what cannot be judged.

    The matcher's `timeout` must exceed `wait_s` by the time that retries may take. Raises `InvalidInput` for options
    that defer: a session that resumes may run its deferred call before the SDK has named its hooks.
    """
    if options is not None and options.defers:
        raise InvalidInput("Calls cannot be deferred by make_hook. Install `sayso hook` with --defer in the settings.")

    async def answer(payload: Any, _call_id: str | None, _context: Any) -> Any:
        try:
            call = read_call("claude-code", to_json(payload))
            verdict = await desk.run(judge(call, options or HookOptions(), desk.retry_policy))
            return write_answer(call, verdict)
        except (SaysoError, ValueError) as fault:  # to_json raises ValueErrors
            reason = f"Sayso blocked the call: {getattr(fault, 'message', fault)}"
            denied = {"permissionDecision": "deny", "permissionDecisionReason": reason}
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}

    return answer
