"""Adapter for LangChain agents, and for LangGraph graphs that interrupt.

    from sayso.adapters.langgraph import gate, sqlite
    bot = gate(build, name="bot", tools=[send], checkpointer=sqlite("threads.db"))

Three kinds of interrupt are supported: those of `HumanInTheLoopMiddleware`, batched and per call, and Agent Inbox's
`HumanInterrupt`. The graph's state stays in its checkpointer. Sayso stores the thread and its interrupts.
"""

import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError
from langgraph.types import Command, Interrupt

from sayso.adapters.base import RESUMED_ELSEWHERE, Adapter, UsageMeter, define_tool
from sayso.adapters.langgraph.middleware import ApprovalMiddleware, GateMiddleware, Mode, check_graph
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from sayso.core.policy.rules import same_json
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput
from sayso.guarding.frameworks import guard_framework
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, build_agent, describe_refusal
from sayso.runner.tools import plain_json


class UsageCounter(BaseCallbackHandler):
    """Notes the tokens of each response under the name of its model."""

    raise_error = True
    run_inline = True

    def __init__(self) -> None:
        self.meter = UsageMeter()

    def on_llm_end(self, response: LLMResult, **_more: Any) -> None:
        """Note one response."""
        message: Any = next((getattr(part, "message", None) for parts in response.generations for part in parts), None)
        usage = getattr(message, "usage_metadata", None) or {}
        about = getattr(message, "response_metadata", None) or {}
        model = about.get("model_name") or about.get("model")
        self.meter.note(model, usage.get("input_tokens"), usage.get("output_tokens"))


Saver = Callable[[], AbstractAsyncContextManager[Any]]
_STRICT = "__pregel_strict_resume"
"""Makes LangGraph refuse a resume value whose interrupt no longer waits, instead of passing it to the next one."""


class Build(Protocol):
    """Builds the graph in each process: `create_agent(…, middleware=middleware, checkpointer=checkpointer)`."""

    def __call__(self, *, checkpointer: Any, middleware: Sequence[Any]) -> Any:
        """Return the compiled graph."""


def sqlite(path: str | Path) -> Saver:
    """Store threads in a SQLite file that every process of the graph can open."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            yield saver

    return connect


def gate(
    build: Build,
    *,
    name: str,
    tools: Sequence[Any],
    checkpointer: Saver,
    interrupt_mode: Mode = "batched",
    write_input: Callable[[str], Any] | None = None,
    idempotent: Collection[str] = (),
    **options: Any,
) -> FrameworkAgent:
    """Return the graph with its tools gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    `tools` are those of the agent, or the actions that the graph interrupts for. `checkpointer` opens the store of its
    threads, such as `sqlite(path)`. Raises `InvalidInput` for a graph in which a tool could run ungated.
    """
    guard_framework("langchain_core")
    definitions = {tool.name: tool for tool in (_define(tool, idempotent) for tool in tools)}
    write = write_input or (lambda text: {"messages": [{"role": "user", "content": text}]})
    framework = LangGraph(build, tuple(definitions), checkpointer, interrupt_mode, write)
    framework.make(InMemorySaver(), "Sayso")
    return build_agent(framework, name, definitions, **options)


@dataclass(frozen=True)
class LangGraph(Adapter):
    """A LangGraph graph behind `sayso.runner.protocol.Framework`."""

    framework = "langgraph"
    package = "langgraph"
    state_schema = "langgraph.thread/1"
    faults = (GraphRecursionError, InvalidUpdateError, EmptyInputError)

    build: Build
    tools: tuple[str, ...]
    checkpointer: Saver
    interrupt_mode: Mode
    write_input: Callable[[str], Any]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        thread_id = new_id("thread")
        async with self._graph() as graph:
            return await self._run(graph, thread_id, self.write_input(text))

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return an error if another process has resumed the thread, else None."""
        saved: Any = native["interrupts"]
        async with self._graph() as graph:
            snapshot = await graph.aget_state(_config(str(native["thread_id"])))
        waiting = {interrupt.id for interrupt in snapshot.interrupts}
        if {interrupt["id"] for interrupt in saved} <= waiting or (not waiting and snapshot.next):
            return None
        return RESUMED_ELSEWHERE.format(what=f"thread {native['thread_id']}")

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Resume all saved interrupts; raises `InvalidInput` if others wait and some calls have no result."""
        thread_id = str(native["thread_id"])
        saved: Any = native["interrupts"]
        async with self._graph(entry.call.name for entry in executor.calls) as graph:
            snapshot = await graph.aget_state(_config(thread_id), subgraphs=True)
            waiting = {interrupt.id for interrupt in snapshot.interrupts}
            ids = {interrupt["id"] for interrupt in saved}
            if ids and ids <= waiting:
                return await self._run(graph, thread_id, Command(resume=_answer(saved, executor)))
            if not waiting and snapshot.next:  # the resume values were applied, the calls have not run
                reached = await self._run(graph, thread_id, None)
                return replace(reached, usage=None) if isinstance(reached, FrameworkTurn) else reached
            if any(entry.result is None for entry in executor.calls):
                raise InvalidInput(RESUMED_ELSEWHERE.format(what=f"thread {thread_id}"))
            return _read(thread_id, snapshot.values, snapshot)

    def make(self, saver: Any, *name: str, pending: Iterable[str] = ()) -> Any:
        """Build the graph, where `pending` tools may be missing; raises `InvalidInput` if a tool could run ungated."""
        ours = [ApprovalMiddleware((*self.tools, *pending), self.interrupt_mode, *name), GateMiddleware(self.tools)]
        graph = self.build(checkpointer=saver, middleware=ours)
        check_graph(graph, ours, self.tools)
        return graph

    @asynccontextmanager
    async def _graph(self, pending: Iterable[str] = ()) -> AsyncIterator[Any]:
        async with self.checkpointer() as saver:
            yield self.make(saver, pending=pending)

    async def _run(self, graph: Any, thread_id: str, given: Any) -> FrameworkTurn | Done:
        counting, config = UsageCounter(), _config(thread_id)
        values = await graph.ainvoke(given, {**config, "callbacks": [counting]}, durability="sync")
        snapshot = await graph.aget_state(config, subgraphs=True)
        reached = _read(thread_id, values, snapshot)
        return replace(reached, usage=counting.meter.read()) if isinstance(reached, FrameworkTurn) else reached


def _config(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id, _STRICT: True}}


def _read(thread_id: str, values: Any, snapshot: Any) -> FrameworkTurn | Done:
    interrupts: Sequence[Interrupt] = snapshot.interrupts
    if not interrupts:
        state: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
        if "structured_response" not in state and (messages := state.get("messages")):
            return Done({"text": messages[-1].text})
        return Done(plain_json(state.get("structured_response", values)))
    read = [(interrupt.id, _read_interrupt(interrupt)) for interrupt in interrupts]
    subagents = dict(_find_paths(snapshot))
    native: JsonObject = {
        "thread_id": thread_id,
        "interrupts": [
            {"id": interrupt_id, "kind": kind, "calls": len(calls), "config": config}
            for interrupt_id, (kind, calls, config) in read
        ],
    }
    calls = tuple(
        call.model_copy(update={"subagent": subagents.get(interrupt_id)})
        for interrupt_id, (_, requested, _) in read
        for call in _name_calls(values, requested)
    )
    return FrameworkTurn(native, calls, unseen=any(kind == "inbox" for _, (kind, _, _) in read))


def _find_paths(snapshot: Any, outer: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the id of each interrupt, with the path of the nodes whose inner graphs lead to it."""
    for task in snapshot.tasks:
        path = outer if task.state is None else (*outer, task.name)
        if hasattr(task.state, "tasks"):
            yield from _find_paths(task.state, path)
        else:
            yield from ((interrupt.id, "/".join(path)) for interrupt in task.interrupts)


def _read_interrupt(interrupt: Interrupt) -> tuple[str, list[RequestedCall], JsonObject]:
    value = interrupt.value
    if isinstance(value, Mapping) and value.get("type") == "tool_approval":
        return "per_call", [_call(value["tool_call_id"], value["name"], value["args"])], {}
    if isinstance(value, Mapping) and "action_requests" in value:
        return "batched", [_call("", request["name"], request["args"]) for request in value["action_requests"]], {}
    request = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(request, Mapping) and "action_request" in request:
        action = request["action_request"]
        config = {**request.get("config", {}), "listed": isinstance(value, list)}
        return "inbox", [_call(interrupt.id, action["action"], action["args"])], config
    raise InvalidInput(
        f"The graph interrupts with a {type(value).__name__} that does not ask for approval. Interrupt with Agent "
        "Inbox's HumanInterrupt, or use HumanInTheLoopMiddleware."
    )


def _name_calls(values: Any, calls: list[RequestedCall]) -> Iterator[RequestedCall]:
    """Yield the calls with the model's ids, which batched interrupts leave out."""
    messages = values.get("messages", ()) if isinstance(values, Mapping) else ()
    turn: Any = next((message.tool_calls for message in reversed(messages) if getattr(message, "tool_calls", None)), [])
    gated = {call.name for call in calls}
    named = [call for call in turn if call["name"] in gated]
    for place, call in enumerate(calls):
        if call.call_id or len(named) != len(calls):
            yield call
        else:
            yield call.model_copy(update={"call_id": named[place]["id"] or ""})


def _answer(saved: Sequence[Mapping[str, Any]], executor: CallExecutor) -> Any:
    answers: dict[str, Any] = {}
    remaining = list(executor.calls)
    for interrupt in saved:
        own, remaining = remaining[: interrupt["calls"]], remaining[interrupt["calls"] :]
        if interrupt["kind"] == "batched":
            answers[interrupt["id"]] = {"decisions": [_decide(entry) for entry in own]}
        elif interrupt["kind"] == "per_call":
            answers[interrupt["id"]] = _decide(own[0])
        else:
            response = _respond(own[0], interrupt["config"])
            answers[interrupt["id"]] = [response] if interrupt["config"]["listed"] else response
    return answers


def _decide(entry: BatchCall) -> Any:
    """Return the middleware's decision. A call with a result is approved: the gate replays the result."""
    refusal = describe_refusal(entry)
    if refusal is not None:
        return {"type": "reject", "message": refusal}
    if entry.ask is None or same_json(entry.ask.tool.args, entry.call.args):
        return {"type": "approve"}
    return {"type": "edit", "edited_action": {"name": entry.call.name, "args": entry.call.args}}


def _respond(entry: BatchCall, config: Mapping[str, Any]) -> Any:
    """Return Agent Inbox's `HumanResponse`. The graph must not run a call that has a result."""
    if entry.result is not None:
        text = str(entry.result.output) if entry.result.success else entry.result.error
        return {"type": "response", "args": text} if config.get("allow_respond") else {"type": "ignore", "args": None}
    if entry.ask is None or same_json(entry.ask.tool.args, entry.call.args):
        return {"type": "accept", "args": None}
    if not config.get("allow_edit"):
        raise InvalidInput(
            f"The graph accepts no edited arguments for {entry.call.name}. Set allow_edit: false in its rule."
        )
    return {"type": "edit", "args": {"action": entry.call.name, "args": entry.call.args}}


def _define(tool: Any, idempotent: Collection[str]) -> ToolDefinition:
    if isinstance(tool, ToolDefinition):
        return tool
    function = convert_to_openai_tool(tool)["function"]
    description = tool.description if isinstance(tool, BaseTool) else function.get("description", "")
    parameters = {**function["parameters"], "additionalProperties": False}
    return define_tool(function["name"], description, parameters, idempotent)


def _call(call_id: str, name: str, args: Any) -> RequestedCall:
    return RequestedCall(call_id=call_id, name=name, args_json=json.dumps(args))
