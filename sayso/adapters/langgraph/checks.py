"""Refuse a graph in which a tool could run that nobody is asked about, or run otherwise than it was approved."""

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

_UNSEEN = "build gives a {kind}, whose tools cannot be seen. Return the compiled graph."
_WITHOUT = (
    "The tools {names} would run without Sayso's middleware, and nobody would be asked. Give create_agent "
    "middleware=middleware, or leave these tools out."
)
_BEHIND = (
    "The middleware {name} comes after Sayso's, so it could change an approved call or run it again. "
    "Put Sayso's last: middleware=[…, *middleware]."
)
_OWN = (
    "The agent has a {name} of its own (interrupt_on=), so two would ask about one call. Leave it out; "
    "Sayso's rules say who is asked."
)
_FOREIGN = "The agent has tools that gate(tools=…) does not name: {names}. Name them."
_INNER = (
    "The tool {tool!r} calls an agent that has tools of its own ({names}), and nobody would be asked about those. "
    "Give them to the gated agent itself."
)
_REMOTE = "The tool {tool!r} calls a graph that runs elsewhere, whose tools cannot be gated. Leave it out."
_ASKS = (
    "The tool {tool!r} interrupts the graph in the middle of its call; Sayso asks before a call alone. "
    "Take interrupt() out of it and ask by a rule."
)


def check_graph(graph: Any, ours: Collection[AgentMiddleware[Any, Any]], known: Collection[str]) -> None:
    """Raise `InvalidInput` unless every tool of the graph runs behind our middleware and is one that is `known`."""
    if not isinstance(graph, Pregel):
        raise InvalidInput(_UNSEEN.format(kind=type(graph).__name__))
    for node in _find_tool_nodes(graph):
        for tool in node.tools_by_name.values():
            _check_tool(tool)
        _check_order(node, ours)
        check_names(node.tools_by_name, known)


def check_names(names: Collection[str], known: Collection[str]) -> None:
    """Raise `InvalidInput` for tools that nobody could be asked about."""
    if foreign := sorted(set(names) - set(known)):
        raise InvalidInput(_FOREIGN.format(names=", ".join(foreign)))


def _check_order(node: ToolNode, ours: Collection[AgentMiddleware[Any, Any]]) -> None:
    """See that ours is there, that it is the one next to the tools, and that nobody else asks."""
    names = ", ".join(node.tools_by_name)
    around = list(_list_middleware(node._awrap_tool_call))
    own = next((one for one in around if isinstance(one, HumanInTheLoopMiddleware) and one not in ours), None)
    if own is not None:
        raise InvalidInput(_OWN.format(name=type(own).__name__))
    if names and not all(one in around for one in ours):
        raise InvalidInput(_WITHOUT.format(names=names))
    if around and around[-1] not in ours:
        raise InvalidInput(_BEHIND.format(name=type(around[-1]).__name__))


def _list_middleware(wrapper: Any) -> Iterator[Any]:
    """Yield whose method each wrapper around the tools is, from the outermost to the innermost."""
    if wrapper is None:
        return
    parts = getclosurevars(wrapper).nonlocals if isfunction(wrapper) else {}
    if {"outer", "inner"} <= parts.keys():
        yield from _list_middleware(parts["outer"])
        yield from _list_middleware(parts["inner"])
    else:
        yield getattr(unwrap(wrapper), "__self__", wrapper)


def _check_tool(tool: BaseTool) -> None:
    """Refuse a tool that calls an agent with tools, or that asks by itself."""
    for function in (getattr(tool, "func", None), getattr(tool, "coroutine", None), tool._run, tool._arun):
        for found in reach(function):
            if found is interrupt:
                raise InvalidInput(_ASKS.format(tool=tool.name))
            if isinstance(found, PregelProtocol) and not isinstance(found, Pregel):
                raise InvalidInput(_REMOTE.format(tool=tool.name))
            if names := _list_inner(found):
                raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))


def _list_inner(found: Any) -> list[str]:
    """Return the names of the tools that an agent would run by itself; none for what is no agent."""
    if not isinstance(found, Runnable):
        return []
    tools = getattr(found, "tools", None) if not isinstance(found, BaseTool) else None
    own = [one.name for one in tools if isinstance(one, BaseTool)] if isinstance(tools, list | tuple) else []
    return sorted({*own, *(name for node in _find_tool_nodes(found) for name in node.tools_by_name)})


def _find_tool_nodes(start: Any) -> list[ToolNode]:
    """Return what runs tools in a graph, in the graphs within it, and in those that its nodes call."""
    found: dict[int, ToolNode] = {}
    seen: dict[int, Any] = {}
    left: list[Any] = [start]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, ToolNode):
            found[id(one)] = one
        elif isinstance(one, Pregel):
            left.extend(node.bound for node in one.nodes.values())
        else:
            left.extend(_list_parts(one))
    return list(found.values())


def _list_parts(one: Any) -> Iterator[Any]:
    """Yield what a runnable is made of, and the graphs that its own function calls."""
    for held in getattr(one, "__dict__", {}).values():
        several = held.values() if isinstance(held, dict) else held if isinstance(held, list | tuple) else (held,)
        yield from (part for part in several if isinstance(part, Runnable))
    for function in (getattr(one, "func", None), getattr(one, "afunc", None), getattr(one, "coroutine", None)):
        if function is not None and not (getattr(function, "__module__", None) or "").startswith("langchain."):
            yield from (found for found in reach(function) if isinstance(found, Pregel | ToolNode))
