"""Guard of Pydantic AI: the step of its tool manager that calls a tool of a toolset."""

import inspect
from collections.abc import Callable
from typing import Any

from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import AbstractToolset

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import refuse_unseen, replace_once, was_gated


def install() -> None:
    """Guard each step of the tool manager that calls a tool."""
    steps = [
        name
        for name, step in vars(ToolManager).items()
        if inspect.iscoroutinefunction(step) and "call_tool" in inspect.unwrap(step).__code__.co_names
    ]
    if not steps:
        raise Changed("no method of ToolManager calls Toolset.call_tool")
    for name in steps:
        replace_once(ToolManager, name, _guard)


def _guard(original: Callable[..., Any]) -> Callable[..., Any]:
    async def execute(manager: Any, validated: Any, *args: Any, **kwargs: Any) -> Any:
        seen = _has_gate(manager.toolset) or was_gated(_find_function(validated.tool))
        agent = getattr(manager.ctx, "agent", None)
        refuse_unseen(validated.call.tool_name, getattr(agent, "name", None), seen)
        return await original(manager, validated, *args, **kwargs)

    return execute


def _has_gate(start: Any) -> bool:
    """Return whether a toolset, or one that it wraps, is that of a gated agent. Such an agent has no others."""
    remaining, seen = [start], set()
    while remaining:
        toolset = remaining.pop()
        if was_gated(toolset):
            return True
        if id(toolset) not in seen:
            seen.add(id(toolset))
            for held in getattr(toolset, "__dict__", {}).values():
                parts = held if isinstance(held, list | tuple) else (held,)
                remaining += [part for part in parts if isinstance(part, AbstractToolset)]
    return False


def _find_function(tool: Any) -> Any:
    while (source := getattr(tool, "source_tool", None)) is not None:
        tool = source
    return getattr(getattr(getattr(tool, "call_func", None), "__self__", None), "function", None)
