"""Guard of the OpenAI Agents SDK: the function that invokes function tools, and the actions of its local tools."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

from agents import tool as tools
from agents.run_internal import tool_actions, tool_execution

from sayso.guarding.frameworks import Changed
from sayso.guarding.runs import refuse_unseen, replace_once, was_gated


def install() -> None:
    """Guard function tools, and tools that the SDK runs on this machine, such as shells."""
    invokers = [name for name, function in vars(tools).items() if _invokes_tool(function)]
    if not invokers or not hasattr(tool_execution, invokers[-1]):
        raise Changed("agents.tool has no function that calls FunctionTool.on_invoke_tool")
    for name in invokers:
        replace_once(tools, name, _guard_function)
        _replace_imports(getattr(tools, name))
    actions = [kind for kind in vars(tool_actions).values() if inspect.isclass(kind) and "execute" in vars(kind)]
    if not actions:
        raise Changed("agents.run_internal.tool_actions has no class with a method execute")
    for action in actions:
        replace_once(action, "execute", _guard_action)


def _invokes_tool(candidate: Any) -> bool:
    if not inspect.iscoroutinefunction(candidate) or candidate.__module__ != tools.__name__:
        return False
    plain = inspect.unwrap(candidate)
    return "on_invoke_tool" in plain.__code__.co_names and "function_tool" in inspect.signature(plain).parameters


def _replace_imports(guard: Any) -> None:
    """Replace the original in the modules that imported it by name."""
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "agents"]:
        for name, held in list(vars(module).items()):
            if held is guard.__wrapped__:
                setattr(module, name, guard)


def _guard_function(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    async def invoke(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        tool, agent = given["function_tool"], getattr(given["context"], "agent", None)
        seen = was_gated(tool.on_invoke_tool) or was_gated(getattr(tool, "__wrapped__", None))
        refuse_unseen(tool.name, getattr(agent, "name", None), seen)
        return await original(*args, **kwargs)

    return invoke


def _guard_action(original: Callable[..., Any]) -> Callable[..., Any]:
    async def execute(kind: Any, *args: Any, **kwargs: Any) -> Any:
        call = kwargs.get("call", kwargs.get("action"))
        parts = getattr(call, "__dict__", {})
        tool = next((part for name, part in parts.items() if name.endswith("_tool")), None)
        name = getattr(tool, "name", None) or kind.__name__
        refuse_unseen(name, getattr(kwargs.get("agent"), "name", None))
        return await original(kind, *args, **kwargs)

    return execute
