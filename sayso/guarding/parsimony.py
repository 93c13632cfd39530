"""Guard of parsimony-agents: the method that calls a tool."""

import inspect
from collections.abc import Callable
from typing import Any

from parsimony_agents.agent.termination_tools import TERMINATION_TOOLS
from parsimony_agents.tools import Tool, ToolResult

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import find_refusal, note_gated, replace_once, was_gated


def install() -> None:
    """Guard `Tool.__call__`. Tools that end a run or ask its user have no other effect, so they start anywhere."""
    if not inspect.iscoroutinefunction(inspect.unwrap(Tool.__call__)):
        raise Changed("Tool.__call__ is no async method")
    for tool in TERMINATION_TOOLS:
        note_gated(tool.function)
    replace_once(Tool, "__call__", _guard)


def _guard(original: Callable[..., Any]) -> Callable[..., Any]:
    async def call(tool: Any, *args: Any, **kwargs: Any) -> Any:
        refusal = find_refusal(tool.name, None, was_gated(tool.function))
        if refusal is not None:  # the framework expects a result of every tool
            return ToolResult(exception_message=refusal, data=None)
        return await original(tool, *args, **kwargs)

    return call
