"""Middleware around the tools of a LangChain agent: one requests approval, one runs calls through the gate."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from inspect import getclosurevars, isfunction, unwrap
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import interrupt

from sayso.adapters.base import NOT_REVIEWED
from sayso.adapters.reachability import reach
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from sayso.errors import IllegalTransition, InvalidInput
from sayso.guarding.runs import admit
from sayso.runner.execution import current_executor
from sayso.runner.protocol import ToolFailed, describe_text

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


Mode = Literal["batched", "per_call"]

_INTERRUPTED = (
    "{name} interrupted the graph while it ran and was stopped, but calls are reviewed only before they start. "
    "Remove interrupt() and add a rule instead."
)


class ApprovalMiddleware(HumanInTheLoopMiddleware[Any, Any, Any]):
    """Interrupt for every call. Threads wait at the node of its name, which is not `HumanInTheLoopMiddleware`."""

    def __init__(self, names: Iterable[str], mode: Mode, name: str = "HumanInTheLoopMiddleware") -> None:
        super().__init__(dict.fromkeys(names, True), interrupt_mode=mode)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


class GateMiddleware(AgentMiddleware[Any, Any]):
    """Run tools only through the gate, as the innermost middleware. A model that names an unknown tool gets a list."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Refuse tools that cannot be reviewed, and give each call a unique id."""
        check_names({tool.name for tool in request.tools if isinstance(tool, BaseTool)}, self._known)
        response = await handler(request)
        messages = [message for message in request.messages if isinstance(message, AIMessage)]
        used = {call["id"] for message in messages for call in message.tool_calls}
        result = [give_ids(part, used) if isinstance(part, AIMessage) else part for part in response.result]
        return replace(response, result=result)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        executor = current_executor()
        entry = executor.find(call["id"], call["name"]) if executor is not None else None
        if entry is None and request.tool is None:
            text = f"There is no tool named {call['name']!r}. There are: {', '.join(self._known)}."
            return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
        if executor is None or entry is None:
            raise IllegalTransition(NOT_REVIEWED.format(name=call["name"]))
        native: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            message = await run_alone(call["name"], handler(request.override(tool_call={**call, "args": args})))
            native.append(message)
            if not isinstance(message, ToolMessage):
                return f"{call['name']} returned a {type(message).__name__} to the graph."
            if message.status == "error":
                raise ToolFailed(str(message.content))
            return message.content

        result = await executor.run(entry, execute)
        if native and result.success is (getattr(native[0], "status", "success") != "error"):
            return native[0]
        status = "success" if result.success else "error"
        return ToolMessage(describe_text(entry, result), tool_call_id=call["id"], name=call["name"], status=status)


def give_ids(message: AIMessage, used: set[str | None]) -> AIMessage:
    """Return the message with an id of its own for each call: of two calls with one id, only one would run."""
    calls = []
    for call in message.tool_calls:
        unique = call["id"] if call["id"] not in used else None
        calls.append(call.copy() | {"id": unique or new_id("call")})
        used.add(calls[-1]["id"])
    return message.model_copy(update={"tool_calls": calls})


async def run_alone(name: str, running: Any) -> Any:
    """Run a judged tool. Raises `ToolFailed` if it interrupts; other tools inside it are refused."""
    try:
        with admit():
            return await running
    except GraphBubbleUp as error:
        raise ToolFailed(_INTERRUPTED.format(name=name)) from error
