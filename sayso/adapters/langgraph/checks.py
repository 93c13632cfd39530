"""Checks that refuse a graph in which a tool could run ungated, or with other arguments than approved."""

from collections.abc import Collection, Iterator
from inspect import getclosurevars, isfunction, unwrap
from typing import Any

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import interrupt

from sayso.adapters.reachability import reach
from sayso.errors import InvalidInput

_NOT_COMPILED = "build returned a {kind}, whose tools cannot be inspected. Return the compiled graph."
_NO_MIDDLEWARE = (
    "The tools {names} would run without Sayso's middleware, and so without review. Pass middleware=middleware to "
    "create_agent, or remove these tools."
)
_WRONG_ORDER = (
    "The middleware {name} comes after Sayso's, so it could change or repeat an approved call. "
    "Put Sayso's last: middleware=[…, *middleware]."
)
_ASKS_TWICE = (
    "The agent has a {name} of its own (interrupt_on=), so each call would be reviewed twice. Remove it. "
    "Sayso's rules choose the reviewers."
)
_UNKNOWN_TOOLS = "The agent has tools that gate(tools=…) does not list: {names}. Add them."
_INNER = (
    "The tool {tool!r} calls an agent with tools of its own ({names}), which would run without review. "
    "Add them to the gated agent instead."
)
_REMOTE = "The tool {tool!r} calls a remote graph, whose tools cannot be gated. Remove it."
_INTERRUPTS = (
    "The tool {tool!r} interrupts the graph while it runs, but calls are reviewed only before they start. "
    "Remove interrupt() and add a rule instead."
)


def check_graph(graph: Any, ours: Collection[AgentMiddleware[Any, Any]], known: Collection[str]) -> None:
    """Raise `InvalidInput` unless every tool is `known` and runs behind our middleware."""
    if not isinstance(graph, Pregel):
        raise InvalidInput(_NOT_COMPILED.format(kind=type(graph).__name__))
    for node in _find_tool_nodes(graph):
        for tool in node.tools_by_name.values():
            _check_tool(tool)
        # Our middleware has to be next to the tools, and no other may ask.
        names = ", ".join(node.tools_by_name)
        around = list(_list_middleware(node._awrap_tool_call))
        for middleware in around:
            if isinstance(middleware, HumanInTheLoopMiddleware) and middleware not in ours:
                raise InvalidInput(_ASKS_TWICE.format(name=type(middleware).__name__))
        if names and not all(middleware in around for middleware in ours):
            raise InvalidInput(_NO_MIDDLEWARE.format(names=names))
        if around and around[-1] not in ours:
            raise InvalidInput(_WRONG_ORDER.format(name=type(around[-1]).__name__))
        check_names(node.tools_by_name, known)


def check_names(names: Collection[str], known: Collection[str]) -> None:
    """Raise `InvalidInput` for tools that are not `known`."""
    if unknown := sorted(set(names) - set(known)):
        raise InvalidInput(_UNKNOWN_TOOLS.format(names=", ".join(unknown)))


def _list_middleware(wrapper: Any) -> Iterator[Any]:
    """Yield the owner of each wrapper around the tools, outermost first."""
    if wrapper is None:
        return
    parts = getclosurevars(wrapper).nonlocals if isfunction(wrapper) else {}
    if {"outer", "inner"} <= parts.keys():
        yield from _list_middleware(parts["outer"])
        yield from _list_middleware(parts["inner"])
    else:
        yield getattr(unwrap(wrapper), "__self__", wrapper)


def _check_tool(tool: BaseTool) -> None:
    """Refuse a tool that calls an agent with tools, or that interrupts."""
    for function in (getattr(tool, "func", None), getattr(tool, "coroutine", None), tool._run, tool._arun):
        for target in reach(function):
            if target is interrupt:
                raise InvalidInput(_INTERRUPTS.format(tool=tool.name))
            if isinstance(target, PregelProtocol) and not isinstance(target, Pregel):
                raise InvalidInput(_REMOTE.format(tool=tool.name))
            if names := _list_inner(target):
                raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))


def _list_inner(target: Any) -> list[str]:
    if not isinstance(target, Runnable):
        return []
    tools = getattr(target, "tools", None) if not isinstance(target, BaseTool) else None
    own = [tool.name for tool in tools if isinstance(tool, BaseTool)] if isinstance(tools, list | tuple) else []
    return sorted({*own, *(name for node in _find_tool_nodes(target) for name in node.tools_by_name)})


def _find_tool_nodes(start: Any) -> list[ToolNode]:
    nodes: dict[int, ToolNode] = {}
    seen: dict[int, Any] = {}
    remaining: list[Any] = [start]
    while remaining:
        runnable = remaining.pop()
        if id(runnable) in seen:
            continue
        seen[id(runnable)] = runnable
        if isinstance(runnable, ToolNode):
            nodes[id(runnable)] = runnable
        elif isinstance(runnable, Pregel):
            remaining.extend(node.bound for node in runnable.nodes.values())
        else:
            remaining.extend(_list_parts(runnable))
    return list(nodes.values())


def _list_parts(runnable: Any) -> Iterator[Any]:
    """Yield the parts of a runnable, and the graphs that its function calls."""
    for held in getattr(runnable, "__dict__", {}).values():
        several = held.values() if isinstance(held, dict) else held if isinstance(held, list | tuple) else (held,)
        yield from (part for part in several if isinstance(part, Runnable))
    for function in (getattr(runnable, name, None) for name in ("func", "afunc", "coroutine")):
        if function is not None and not (getattr(function, "__module__", None) or "").startswith("langchain."):
            yield from (part for part in reach(function) if isinstance(part, Pregel | ToolNode))
