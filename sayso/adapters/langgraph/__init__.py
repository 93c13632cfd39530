"""Have every tool call of a LangChain agent, or whatever a LangGraph graph interrupts for, judged before it runs.

    from sayso.adapters.langgraph import gate, sqlite
    bot = gate(build, name="bot", tools=[send], checkpointer=sqlite("threads.db"))

Three kinds of interrupt are understood: those of `HumanInTheLoopMiddleware`, batched and per call, and Agent Inbox's
`HumanInterrupt`. The graph's state stays in its checkpointer; Sayso keeps the thread and the interrupts it waits at.
"""

import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt
from pydantic import JsonValue

from sayso.adapters.langgraph.checks import check_graph
from sayso.adapters.langgraph.middleware import Asking, Journalled, Mode
from sayso.canonical_json import JsonObject
from sayso.clock import new_id
from sayso.errors import InvalidInput
from sayso.policy.rules import same_json
from sayso.records.suspensions import Origin
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, build_agent, describe_refusal
from sayso.runner.tools import plain_json

Saver = Callable[[], AbstractAsyncContextManager[Any]]
_STRICT = "__pregel_strict_resume"
"""With it LangGraph refuses an answer to an interrupt that no longer waits, rather than giving it to the next one."""


_ELSEWHERE = (
    "The thread {thread_id} no longer waits where this was asked: somebody else has gone on with it. The answers "
    "are not given to another question; cancel this run."
)


class Build(Protocol):
    """What makes the graph anew in every process: `create_agent(…, middleware=middleware, checkpointer=checkpointer)`.

    A graph that interrupts by itself leaves the middleware out.
    """

    def __call__(self, *, checkpointer: Any, middleware: Sequence[Any]) -> Any:
        """Return the compiled graph."""
        ...


def sqlite(path: str | Path) -> Saver:
    """Keep the threads in a SQLite file that every process which runs the graph can reach."""

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
    """Return the graph with its tools behind Sayso, for `SAYSO_AGENTS` and for `start`.

    `tools` are the agent's, or the actions that the graph interrupts for. `checkpointer` opens what keeps its threads,
    such as `sqlite(path)`. Raises `InvalidInput` for a graph in which a tool could run that nobody is asked about.
    """
    found = [_define(one, idempotent) for one in tools]
    definitions = {one.name: one for one in found}
    framework = LangGraph(build, tuple(definitions), checkpointer, interrupt_mode, write_input or _write_input)
    framework.make(InMemorySaver(), "Sayso")
    return build_agent(framework, name, definitions, **options)


@dataclass(frozen=True)
class LangGraph:
    """A LangGraph graph behind `sayso.runner.protocol.Framework`."""

    build: Build
    tools: tuple[str, ...]
    checkpointer: Saver
    interrupt_mode: Mode
    write_input: Callable[[str], Any]

    @property
    def origin(self) -> Origin:
        """Which software this is, and how its state is written."""
        return Origin(
            framework="langgraph",
            framework_version=version("langgraph"),
            adapter="sayso.adapters.langgraph",
            state_schema="langgraph.thread/1",
        )

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run a new thread up to its first interrupts, or to the end."""
        thread_id = new_id("thread")
        async with self._graph() as graph:
            return await self._run(graph, thread_id, self.write_input(text))

    async def find_fault(self, native: JsonObject) -> str | None:
        """Say that the thread waits elsewhere by now, or has ended: somebody else has gone on with it."""
        asked: Any = native["interrupts"]
        async with self._graph() as graph:
            snapshot = await graph.aget_state(_config(str(native["thread_id"])))
        waiting, ours = {one.id for one in snapshot.interrupts}, {one["id"] for one in asked}
        if ours <= waiting or (not waiting and snapshot.next):
            return None
        return _ELSEWHERE.format(thread_id=native["thread_id"])

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Answer the very interrupts that were asked about, all together, and run on.

        Raises `InvalidInput` when the thread waits at others by now and not everything that was asked has ended.
        """
        thread_id = str(native["thread_id"])
        asked: Any = native["interrupts"]
        async with self._graph(one.call.name for one in executor.calls) as graph:
            snapshot = await graph.aget_state(_config(thread_id))
            waiting = {one.id for one in snapshot.interrupts}
            ours = {one["id"] for one in asked}
            if ours and ours <= waiting:
                return await self._run(graph, thread_id, Command(resume=_answer(asked, executor)))
            if not waiting and snapshot.next:  # the answers are taken already, and the calls come after them
                return await self._run(graph, thread_id, None)
            if any(one.result is None for one in executor.calls):
                raise InvalidInput(_ELSEWHERE.format(thread_id=thread_id))
            return _read(thread_id, snapshot.values, snapshot)

    def make(self, saver: Any, *name: str, asked: Iterable[str] = ()) -> Any:
        """Return the graph; what was `asked` is answered also where the agent no longer has its tool.

        Raises `InvalidInput` where a tool could run that nobody is asked about.
        """
        ours = [Asking((*self.tools, *asked), self.interrupt_mode, *name), Journalled(self.tools)]
        graph = self.build(checkpointer=saver, middleware=ours)
        check_graph(graph, ours, self.tools)
        return graph

    @asynccontextmanager
    async def _graph(self, asked: Iterable[str] = ()) -> AsyncIterator[Any]:
        async with self.checkpointer() as saver:
            yield self.make(saver, asked=asked)

    async def _run(self, graph: Any, thread_id: str, given: Any) -> FrameworkTurn | Done:
        values = await graph.ainvoke(given, _config(thread_id), durability="sync")
        snapshot = await graph.aget_state(_config(thread_id))
        return _read(thread_id, values, snapshot)


def _config(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id, _STRICT: True}}


def _read(thread_id: str, values: Any, snapshot: Any) -> FrameworkTurn | Done:
    """Return what the graph waits for, or what it came to."""
    interrupts: Sequence[Interrupt] = snapshot.interrupts
    if not interrupts:
        return Done(_read_result(values))
    read = [(one, _read_interrupt(one)) for one in interrupts]
    inner = {one.id: task.name if task.state is not None else "" for task in snapshot.tasks for one in task.interrupts}
    native: JsonObject = {
        "thread_id": thread_id,
        "interrupts": [
            {"id": one.id, "kind": kind, "calls": len(calls), "config": config} for one, (kind, calls, config) in read
        ],
    }
    calls = tuple(
        call.model_copy(update={"subagent": inner.get(one.id)})
        for one, (_, found, _) in read
        for call in _name_calls(values, found)
    )
    return FrameworkTurn(native, calls, unseen=any(kind == "inbox" for _, (kind, _, _) in read))


def _read_interrupt(interrupt: Interrupt) -> tuple[str, list[RequestedCall], JsonObject]:
    """Return which kind of interrupt this is, the calls it is about, and what may be answered."""
    value = interrupt.value
    if isinstance(value, Mapping) and value.get("type") == "tool_approval":
        return "per_call", [_call(value["tool_call_id"], value["name"], value["args"])], {}
    if isinstance(value, Mapping) and "action_requests" in value:
        return "batched", [_call("", one["name"], one["args"]) for one in value["action_requests"]], {}
    request = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(request, Mapping) and "action_request" in request:
        action = request["action_request"]
        config = {**request.get("config", {}), "listed": isinstance(value, list)}
        return "inbox", [_call(interrupt.id, action["action"], action["args"])], config
    raise InvalidInput(
        f"The graph interrupts with a {type(value).__name__} that is no tool approval. Interrupt with Agent Inbox's "
        "HumanInterrupt, or let HumanInTheLoopMiddleware do it."
    )


def _name_calls(values: Any, calls: list[RequestedCall]) -> Iterator[RequestedCall]:
    """Yield the calls with the model's own ids; a batched interrupt leaves them out and has each gated call."""
    messages = values.get("messages", ()) if isinstance(values, Mapping) else ()
    turn: Any = next((one.tool_calls for one in reversed(messages) if getattr(one, "tool_calls", None)), [])
    gated = {call.name for call in calls}
    asked = [one for one in turn if one["name"] in gated]
    for place, call in enumerate(calls):
        if call.call_id or len(asked) != len(calls):
            yield call
        else:
            yield call.model_copy(update={"call_id": asked[place]["id"] or ""})


def _answer(asked: Sequence[Mapping[str, Any]], executor: CallExecutor) -> Any:
    """Return the answer to each interrupt by its id."""
    answers: dict[str, Any] = {}
    left = list(executor.calls)
    for interrupt in asked:
        own, left = left[: interrupt["calls"]], left[interrupt["calls"] :]
        if interrupt["kind"] == "batched":
            answers[interrupt["id"]] = {"decisions": [_decide(one) for one in own]}
        elif interrupt["kind"] == "per_call":
            answers[interrupt["id"]] = _decide(own[0])
        else:
            response = _respond(own[0], interrupt["config"])
            answers[interrupt["id"]] = [response] if interrupt["config"]["listed"] else response
    return answers


def _decide(one: BatchCall) -> Any:
    """Return the middleware's word; a call whose result is known goes on too, for the gate has its result."""
    refusal = describe_refusal(one)
    if refusal is not None:
        return {"type": "reject", "message": refusal}
    if one.ask is None or same_json(one.ask.tool.args, one.call.args):
        return {"type": "approve"}
    return {"type": "edit", "edited_action": {"name": one.call.name, "args": one.call.args}}


def _respond(one: BatchCall, config: Mapping[str, Any]) -> Any:
    """Return Agent Inbox's `HumanResponse`; a call that has its result must not be run by the graph again."""
    if one.result is not None:
        text = str(one.result.output) if one.result.success else one.result.error
        return {"type": "response", "args": text} if config.get("allow_respond") else {"type": "ignore", "args": None}
    if one.ask is None or same_json(one.ask.tool.args, one.call.args):
        return {"type": "accept", "args": None}
    if not config.get("allow_edit"):
        raise InvalidInput(
            f"The graph takes no edited arguments for {one.call.name}; say allow_edit: false in its rule."
        )
    return {"type": "edit", "args": {"action": one.call.name, "args": one.call.args}}


def _read_result(values: Any) -> JsonValue:
    found: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
    if "structured_response" in found:
        structured: JsonValue = plain_json(found["structured_response"])
        return structured
    if messages := found.get("messages"):
        return {"text": messages[-1].text}
    result: JsonValue = plain_json(values)
    return result


def _define(tool: Any, idempotent: Collection[str]) -> ToolDefinition:
    if isinstance(tool, ToolDefinition):
        return tool
    function = convert_to_openai_tool(tool)["function"]
    words = tool.description if isinstance(tool, BaseTool) else function.get("description", "")
    parameters = {**function["parameters"], "additionalProperties": False}
    name = function["name"]
    return ToolDefinition(name=name, description=words, parameters=parameters, idempotent=name in idempotent)


def _write_input(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def _call(call_id: str, name: str, args: Any) -> RequestedCall:
    return RequestedCall(call_id=call_id, name=name, args_json=json.dumps(args))
