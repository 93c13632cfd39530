"""Adapter for AutoGen agents, alone or in a Swarm.

    from sayso.adapters.autogen import gate
    bot = gate(lambda gated: gated(make_agent()), name="bot")

The agent stops when its model requests calls (`ToolCallRequestEvent`), before any of them runs. Approved calls run
in its own workbench. The model gets the results of all calls in one `FunctionExecutionResultMessage`. Other ways to
stop an AutoGen agent deadlock it or let other calls of the turn run. Members that could run tools ungated are
refused.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent, UserProxyAgent
from autogen_agentchat.base import OrTerminationCondition, Response
from autogen_agentchat.conditions import HandoffTermination
from autogen_agentchat.messages import (
    BaseChatMessage,
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    StructuredMessage,
    TextMessage,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
    ToolCallSummaryMessage,
)
from autogen_agentchat.teams import BaseGroupChat, Swarm
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import FunctionExecutionResult, FunctionExecutionResultMessage
from autogen_core.tools import StaticWorkbench

from sayso.adapters.base import Adapter, UsageMeter, define_tool, run_blocking
from sayso.adapters.reachability import reach
from sayso.core.canonical_json import JsonObject
from sayso.core.records.run_state import read_state, write_state
from sayso.core.records.suspensions import ModelUsage
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput
from sayso.guarding.frameworks import guard_framework
from sayso.guarding.runs import admit
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, ToolFailed, build_agent, describe_text

_RESPONSES = (ToolCallRequestEvent, TextMessage, StructuredMessage)
"""The messages that hold a response of a model. The others follow from one of these."""


def read_usage(messages: Sequence[Any], assistants: Collection[AssistantAgent]) -> tuple[ModelUsage, ...] | None:
    """Return the usage by model, or None if a response of an assistant has none."""
    meter, models = UsageMeter(), {assistant.name: _name_model(assistant._model_client) for assistant in assistants}
    for message in messages:
        if isinstance(message, _RESPONSES) and message.source in models:
            used = message.models_usage
            given, made = (used.prompt_tokens, used.completion_tokens) if used is not None else (None, None)
            meter.note(models[message.source], given, made)
    return meter.read()


def _name_model(client: Any) -> Any:
    """Return the name of the client's model; clients have no public name for it."""
    args = getattr(client, "_create_args", None)
    return args.get("model") if isinstance(args, Mapping) else None


_KIND = (
    "build returned a {kind}, which selects the next speaker itself and may not return to the waiting agent. "
    "Use a Swarm."
)
_ENDLESS = (
    "The Swarm does not end when an agent waits. Pass "
    "termination_condition=HandoffTermination(DESK), alone or joined to others with |."
)
_UNGATED = "The agent {name!r} has tools that would run without review ({tools}). Wrap it in gated(…)."
_UNKNOWN = (
    "The agent {name!r} is a {kind}, which could run tools without review. Use an AssistantAgent wrapped in gated(…)."
)
_INNER = (
    "The tool {tool!r} calls an agent with tools of its own ({names}), which would run without review. "
    "Add them to a gated agent and hand off to it."
)


async def check_team(runnable: Any, gated: Collection[BaseChatAgent], inner: Collection[Any], desk: str) -> None:
    """Raise `InvalidInput` unless each member is gated (`inner`) or has no tools, and the team stops at the desk."""
    if isinstance(runnable, BaseGroupChat):
        if not isinstance(runnable, Swarm):
            raise InvalidInput(_KIND.format(kind=type(runnable).__name__))
        if not any(end._target == desk for end in _list_ends(runnable._termination_condition)):
            raise InvalidInput(_ENDLESS)
    for member in _list_members(runnable):
        if not any(member is agent for agent in gated):
            if isinstance(member, AssistantAgent):
                if names := [name async for name in _list_names(member)]:
                    raise InvalidInput(_UNGATED.format(name=member.name, tools=", ".join(names)))
            elif not isinstance(member, UserProxyAgent):
                raise InvalidInput(_UNKNOWN.format(name=getattr(member, "name", "?"), kind=type(member).__name__))
    workbenches = (workbench for assistant in inner for workbench in assistant._workbench or ())
    for workbench in workbenches:
        for tool in workbench._tools if isinstance(workbench, StaticWorkbench) else ():
            for target in reach(tool.run):
                if names := [name async for name in _list_inner(target)]:
                    raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))


def list_assistants(runnable: Any, inner: Collection[AssistantAgent]) -> list[AssistantAgent]:
    """Return the members that ask a model: those that are gated (`inner`), and those without tools."""
    return [*inner, *(member for member in _list_members(runnable) if isinstance(member, AssistantAgent))]


def _list_members(runnable: Any) -> list[Any]:
    members: list[Any] = runnable._participants if isinstance(runnable, BaseGroupChat) else [runnable]
    return members


async def _list_inner(target: Any) -> AsyncIterator[str]:
    if isinstance(target, BaseGroupChat):
        for member in target._participants:
            async for name in _list_inner(member):
                yield name
    elif isinstance(target, AssistantAgent):
        async for name in _list_names(target):
            yield name
    elif isinstance(target, BaseChatAgent) and not isinstance(target, UserProxyAgent):
        yield f"{type(target).__name__} {target.name}"


async def _list_names(assistant: AssistantAgent) -> AsyncIterator[str]:
    for workbench in assistant._workbench or ():
        for tool in await workbench.list_tools():
            yield tool["name"]


def _list_ends(condition: Any) -> Iterator[HandoffTermination]:
    """Yield the handoff conditions that each end the team alone."""
    if isinstance(condition, HandoffTermination):
        yield condition
    elif isinstance(condition, OrTerminationCondition):
        for part in condition._conditions:
            yield from _list_ends(part)


DESK = "sayso"
"""The handoff target while calls wait: `HandoffTermination(DESK)` ends a team's run there."""

_DECIDED = "The pending calls were decided."
_NOT_RUN = "Not run: handoffs cannot be combined with tool calls. Repeat it alone."


class GatedAgent(BaseChatAgent):
    """An assistant that hands off to the desk instead of calling tools, and continues when handed back to."""

    def __init__(self, inner: AssistantAgent) -> None:
        super().__init__(inner.name, inner.description)
        self.inner = inner
        self.executor: CallExecutor | None = None
        self.pending: ToolCallRequestEvent | None = None
        self._used = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (*self.inner.produced_message_types, HandoffMessage)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        async for message in self.on_messages_stream(messages, cancellation_token):
            if isinstance(message, Response):
                return message
        raise InvalidInput(f"The agent {self.name} gave no response.")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Any, None]:
        """Yield the assistant's messages up to its next calls. The response holds all of them."""
        history: list[Any] = []
        if self.pending is not None:
            if self.executor is None:
                raise InvalidInput(f"The agent {self.name} waits for a decision and accepts no messages until then.")
            pending, results = self.pending, await self._run_calls(self.pending, self.executor, cancellation_token)
            self.pending = self.executor = None
            history.append(ToolCallExecutionEvent(content=results, source=self.name))
            yield history[0]
            if (summary := self._summarise(pending.content, results)) is not None:
                self._used = 0
                yield Response(chat_message=summary, inner_messages=history)
                return
            messages = ()
        else:
            self._used = 0
        stream = self.inner.on_messages_stream(messages, cancellation_token)
        async for message in stream:
            if isinstance(message, Response):
                yield Response(chat_message=message.chat_message, inner_messages=history)
                continue
            if not isinstance(message, ModelClientStreamingChunkEvent):
                history.append(message)
            yield message
            if isinstance(message, ToolCallRequestEvent) and await self.find_gated(message.content):
                await stream.aclose()  # the next step would start the calls
                self._used += 1
                self.pending = message
                text = f"Waits for a decision on {', '.join(call.name for call in message.content)}."
                handoff = HandoffMessage(source=self.name, target=DESK, content=text)
                yield Response(chat_message=handoff, inner_messages=history)
                return

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self.pending, self._used = None, 0
        await self.inner.on_reset(cancellation_token)

    async def save_state(self) -> Mapping[str, Any]:
        pending = json.loads(self.pending.model_dump_json()) if self.pending is not None else None
        return {"inner": await self.inner.save_state(), "pending": pending, "used": self._used}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self.inner.load_state(state["inner"])
        pending = state["pending"]
        self.pending = ToolCallRequestEvent.model_validate(pending) if pending is not None else None
        self._used = state["used"]

    async def list_tools(self) -> list[Any]:
        return [tool for workbench in self.inner._workbench for tool in await workbench.list_tools()]

    async def find_gated(self, calls: Sequence[FunctionCall]) -> list[FunctionCall]:
        """Return the calls of tools, without those that hand off to another agent."""
        names = {tool["name"] for tool in await self.list_tools()}
        handoffs = set(self.inner._handoffs)
        return [call for call in calls if call.name in names or call.name not in handoffs]

    async def _run_calls(
        self, pending: ToolCallRequestEvent, executor: CallExecutor, token: CancellationToken
    ) -> list[FunctionExecutionResult]:
        gated = await self.find_gated(pending.content)
        calls = list(zip(gated, executor.calls, strict=True))
        ran = await asyncio.gather(*(self._run(call.id, entry, executor, token) for call, entry in calls))
        by_call = {id(call): result for call, result in zip(gated, ran, strict=True)}
        results = [
            by_call.get(id(call))
            or FunctionExecutionResult(content=_NOT_RUN, name=call.name, call_id=call.id, is_error=True)
            for call in pending.content
        ]
        await self.inner.model_context.add_message(FunctionExecutionResultMessage(content=results))
        return results

    async def _run(
        self, call_id: str, entry: BatchCall, executor: CallExecutor, token: CancellationToken
    ) -> FunctionExecutionResult:
        call = entry.call

        async def execute(args: JsonObject) -> Any:
            for workbench in self.inner._workbench:
                if any(tool["name"] == call.name for tool in await workbench.list_tools()):
                    with admit() if isinstance(workbench, StaticWorkbench) else nullcontext():
                        result = await workbench.call_tool(call.name, args, token, call_id=call_id)
                    if result.is_error:
                        raise ToolFailed(result.to_text())
                    return result.to_text()
            raise InvalidInput(f"No workbench of {self.name} has the tool {call.name}.")

        result = await executor.run(entry, execute)
        content = describe_text(entry, result) if result.success else result.error or ""
        return FunctionExecutionResult(content=content, name=call.name, call_id=call_id, is_error=not result.success)

    def _summarise(
        self, calls: Sequence[FunctionCall], results: Sequence[FunctionExecutionResult]
    ) -> BaseChatMessage | None:
        """Return the tool summary once the tool iterations are used up, unless the model reflects on the results."""
        inner = self.inner
        if self._used < inner._max_tool_iterations or inner._reflect_on_tool_use:
            return None
        format_call = inner._tool_call_summary_formatter or (
            lambda call, result: inner._tool_call_summary_format.format(
                tool_name=call.name, arguments=call.arguments, result=result.content, is_error=result.is_error
            )
        )
        content = "\n".join(format_call(call, result) for call, result in zip(calls, results, strict=True))
        return ToolCallSummaryMessage(content=content, source=self.name, tool_calls=list(calls), results=list(results))


Build = Callable[[Callable[[AssistantAgent], GatedAgent]], Any]
"""Builds the agent or team in each process. It wraps each assistant that has tools in `gated`."""


def gate(build: Build, *, name: str, idempotent: Collection[str] = (), **options: Any) -> FrameworkAgent:
    """Return the agent or Swarm with its tools gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    A team needs `HandoffTermination(DESK)`. Raises `InvalidInput` if a member could run tools ungated.
    """
    guard_framework("autogen_agentchat")
    framework = AutoGen(build)
    definitions: dict[str, ToolDefinition] = {}
    for tool in run_blocking(framework.list_tools):
        definition = define_tool(tool["name"], tool.get("description"), tool["parameters"], idempotent)
        if definitions.setdefault(definition.name, definition) != definition:
            raise InvalidInput(f"Two tools are named {definition.name!r}. Rename one of them.")
    return build_agent(framework, name, definitions, **options)


class AutoGen(Adapter):
    """An AutoGen agent or team behind `sayso.runner.protocol.Framework`."""

    framework = "autogen"
    package = "autogen-agentchat"
    state_schema = "autogen.state/1"

    def __init__(self, build: Build) -> None:
        self._build = build

    async def list_tools(self) -> list[Any]:
        _, gated = await self._make()
        return [tool for agent in gated.values() for tool in await agent.list_tools()]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        runnable, gated = await self._make()
        return await self._rest(runnable, gated, await runnable.run(task=text))

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Hand back to the agent that waited, with the gate for its calls."""
        runnable, gated = await self._make()
        await runnable.load_state(native["state"])
        waiting = gated.get(str(native["agent"]))
        if waiting is None or waiting.pending is None:
            raise InvalidInput(f"No agent {native['agent']!r} waits for a decision. Cancel this run.")
        waiting.executor = executor
        handoff = HandoffMessage(source=DESK, target=waiting.name, content=_DECIDED)
        return await self._rest(runnable, gated, await runnable.run(task=handoff))

    async def _make(self) -> tuple[Any, dict[str, GatedAgent]]:
        gated: dict[str, GatedAgent] = {}

        def wrap(agent: AssistantAgent) -> GatedAgent:
            gated[agent.name] = GatedAgent(agent)
            return gated[agent.name]

        runnable = self._build(wrap)
        await check_team(runnable, gated.values(), [agent.inner for agent in gated.values()], DESK)
        return runnable, gated

    async def _rest(self, runnable: Any, gated: Mapping[str, GatedAgent], result: Any) -> FrameworkTurn | Done:
        events = tuple(json.loads(message.model_dump_json()) for message in result.messages)
        waiting = next((agent for agent in gated.values() if agent.pending is not None), None)
        if waiting is None or waiting.pending is None:
            return Done({"text": result.messages[-1].to_text()}, external_events=events)
        state = read_state(write_state(dict(await runnable.save_state())))
        native: JsonObject = {"agent": waiting.name, "state": state}
        member = "" if runnable is waiting else waiting.name
        calls = tuple(
            RequestedCall(call_id=call.id, name=call.name, args_json=call.arguments, subagent=member)
            for call in await waiting.find_gated(waiting.pending.content)
        )
        usage = read_usage(result.messages, list_assistants(runnable, [agent.inner for agent in gated.values()]))
        return FrameworkTurn(native, calls, external_events=events, usage=usage)
