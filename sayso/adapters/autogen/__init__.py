"""Have every tool call of an AutoGen agent, alone or in a Swarm, judged before it runs.

    from sayso.adapters.autogen import gate
    bot = gate(lambda gated: gated(make_agent()), name="bot")

The agent stops where its model asks for calls (`ToolCallRequestEvent`), before any of them runs. What has leave runs
through its own workbench; the model is told of all calls in one `FunctionExecutionResultMessage`. Other ways to stop an
AutoGen agent deadlock it or let the siblings of a call run.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseChatMessage,
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
    ToolCallSummaryMessage,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import FunctionExecutionResult, FunctionExecutionResultMessage

from sayso.adapters.autogen.checks import check_team
from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.records.run_state import read_state, write_state
from sayso.records.suspensions import Origin
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, ToolFailed, build_agent, describe_text

DESK = "sayso"
"""To whom an agent hands off while its calls wait: `HandoffTermination(DESK)` ends a team's run there."""

_DECIDED = "The calls that waited were decided."
_NOT_YET = "Not done: it came together with other calls. Ask for it again by itself."


class GatedAgent(BaseChatAgent):
    """An assistant that hands off to the desk instead of calling tools, and goes on when it is handed back to."""

    def __init__(self, inner: AssistantAgent) -> None:
        super().__init__(inner.name, inner.description)
        self.inner = inner
        self.executor: CallExecutor | None = None
        self.pending: ToolCallRequestEvent | None = None
        self._used = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """Return what the assistant may say, and the handing off."""
        return (*self.inner.produced_message_types, HandoffMessage)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Return the last thing said."""
        async for one in self.on_messages_stream(messages, cancellation_token):
            if isinstance(one, Response):
                return one
        raise InvalidInput(f"The agent {self.name} said nothing.")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Any, None]:
        """Yield what the assistant says, up to its next calls; the response has all of it, as the audit trail."""
        said: list[Any] = []
        if self.pending is not None:
            if self.executor is None:
                raise InvalidInput(f"The agent {self.name} waits for a decision; it cannot be told anything before.")
            pending, results = self.pending, await self._run_calls(self.pending, self.executor, cancellation_token)
            self.pending = self.executor = None
            said.append(ToolCallExecutionEvent(content=results, source=self.name))
            yield said[0]
            if (summary := self._summarise(pending.content, results)) is not None:
                self._used = 0
                yield Response(chat_message=summary, inner_messages=said)
                return
            messages = ()
        else:
            self._used = 0
        stream = self.inner.on_messages_stream(messages, cancellation_token)
        async for one in stream:
            if isinstance(one, Response):
                yield Response(chat_message=one.chat_message, inner_messages=said)
                continue
            if not isinstance(one, ModelClientStreamingChunkEvent):
                said.append(one)
            yield one
            if isinstance(one, ToolCallRequestEvent) and await self.find_gated(one.content):
                await stream.aclose()  # before the next step: that one would start the calls
                self._used += 1
                self.pending = one
                words = f"Waits for a decision on {', '.join(call.name for call in one.content)}."
                handed = HandoffMessage(source=self.name, target=DESK, content=words)
                yield Response(chat_message=handed, inner_messages=said)
                return

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget everything."""
        self.pending, self._used = None, 0
        await self.inner.on_reset(cancellation_token)

    async def save_state(self) -> Mapping[str, Any]:
        """Return the assistant's state and what it waits for."""
        pending = json.loads(self.pending.model_dump_json()) if self.pending is not None else None
        return {"inner": await self.inner.save_state(), "pending": pending, "used": self._used}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Be what was saved."""
        await self.inner.load_state(state["inner"])
        pending = state["pending"]
        self.pending = ToolCallRequestEvent.model_validate(pending) if pending is not None else None
        self._used = state["used"]

    async def list_tools(self) -> list[Any]:
        """Return the schemas of all tools in the workbenches; handing off is none of them."""
        return [tool for workbench in self.inner._workbench for tool in await workbench.list_tools()]

    async def find_gated(self, calls: Sequence[FunctionCall]) -> list[FunctionCall]:
        """Return the calls of tools; those left over hand off to another agent, which changes nothing."""
        names = {tool["name"] for tool in await self.list_tools()}
        handoffs = set(self.inner._handoffs)
        return [one for one in calls if one.name in names or one.name not in handoffs]

    async def _run_calls(
        self, pending: ToolCallRequestEvent, executor: CallExecutor, token: CancellationToken
    ) -> list[FunctionExecutionResult]:
        gated = await self.find_gated(pending.content)
        calls = list(zip(gated, executor.calls, strict=True))
        ran = await asyncio.gather(*(self._run(call.id, one, executor, token) for call, one in calls))
        told = {id(call): result for call, result in zip(gated, ran, strict=True)}
        results = [told.get(id(one)) or _not_done(one) for one in pending.content]
        await self.inner.model_context.add_message(FunctionExecutionResultMessage(content=results))
        return results

    async def _run(
        self, call_id: str, one: BatchCall, executor: CallExecutor, token: CancellationToken
    ) -> FunctionExecutionResult:
        call = one.call

        async def execute(args: JsonObject) -> Any:
            for workbench in self.inner._workbench:
                if any(tool["name"] == call.name for tool in await workbench.list_tools()):
                    result = await workbench.call_tool(call.name, args, token, call_id=call_id)
                    if result.is_error:
                        raise ToolFailed(result.to_text())
                    return result.to_text()
            raise InvalidInput(f"No workbench of {self.name} has the tool {call.name}.")

        result = await executor.run(one, execute)
        content = describe_text(one, result) if result.success else result.error or ""
        return FunctionExecutionResult(content=content, name=call.name, call_id=call_id, is_error=not result.success)

    def _summarise(
        self, calls: Sequence[FunctionCall], results: Sequence[FunctionExecutionResult]
    ) -> BaseChatMessage | None:
        """Return what the assistant says when its tool iterations are used up, unless its model has the last word."""
        inner = self.inner
        if self._used < inner._max_tool_iterations or inner._reflect_on_tool_use:
            return None
        write = inner._tool_call_summary_formatter or (
            lambda call, result: inner._tool_call_summary_format.format(
                tool_name=call.name, arguments=call.arguments, result=result.content, is_error=result.is_error
            )
        )
        content = "\n".join(write(call, result) for call, result in zip(calls, results, strict=True))
        return ToolCallSummaryMessage(content=content, source=self.name, tool_calls=list(calls), results=list(results))


Build = Callable[[Callable[[AssistantAgent], GatedAgent]], Any]
"""What makes the agent or the team anew in every process: it puts each assistant with tools through `gated`."""


def gate(build: Build, *, name: str, idempotent: Collection[str] = (), **options: Any) -> FrameworkAgent:
    """Return the agent or Swarm with its tools behind Sayso, for `SAYSO_AGENTS` and for `start`.

    A team needs `HandoffTermination(DESK)`. The other options are those of `sayso.runner.agents.Agent`. Raises `InvalidInput`
    where a member could act without anybody being asked.
    """
    framework = AutoGen(build)
    definitions: dict[str, ToolDefinition] = {}
    for one in _run_now(framework.list_tools):
        definition = ToolDefinition(
            name=one["name"],
            description=one.get("description", ""),
            parameters={**one["parameters"]},
            idempotent=one["name"] in idempotent,
        )
        if definitions.setdefault(definition.name, definition) != definition:
            raise InvalidInput(f"Two tools are named {definition.name!r}; rename one of them.")
    return build_agent(framework, name, definitions, **options)


class AutoGen:
    """An AutoGen agent or team behind `sayso.runner.protocol.Framework`."""

    def __init__(self, build: Build) -> None:
        self._build = build

    @property
    def origin(self) -> Origin:
        """Which software this is, and how its state is written."""
        return Origin(
            framework="autogen",
            framework_version=version("autogen-agentchat"),
            adapter="sayso.adapters.autogen",
            state_schema="autogen.state/1",
        )

    async def list_tools(self) -> list[Any]:
        """Return the schemas of all tools of all gated agents."""
        _, gated = await self._make()
        return [tool for agent in gated.values() for tool in await agent.list_tools()]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run up to the first turn that calls tools, or to the end."""
        runnable, gated = await self._make()
        return await self._rest(runnable, gated, await runnable.run(task=text))

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return None: the state is all there is to go on from, and it was kept."""
        return None

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Hand back to the agent that waited, with leave for its calls."""
        runnable, gated = await self._make()
        await runnable.load_state(native["state"])
        waiting = gated.get(str(native["agent"]))
        if waiting is None or waiting.pending is None:
            raise InvalidInput(f"No agent {native['agent']!r} waits for a decision here; the run cannot go on.")
        waiting.executor = executor
        handed = HandoffMessage(source=DESK, target=waiting.name, content=_DECIDED)
        return await self._rest(runnable, gated, await runnable.run(task=handed))

    async def _make(self) -> tuple[Any, dict[str, GatedAgent]]:
        """Build it anew. Raises `InvalidInput` where a member could act without anybody being asked."""
        gated: dict[str, GatedAgent] = {}

        def wrap(agent: AssistantAgent) -> GatedAgent:
            gated[agent.name] = GatedAgent(agent)
            return gated[agent.name]

        runnable = self._build(wrap)
        await check_team(runnable, gated.values(), [one.inner for one in gated.values()], DESK)
        return runnable, gated

    async def _rest(self, runnable: Any, gated: Mapping[str, GatedAgent], result: Any) -> FrameworkTurn | Done:
        told = tuple(json.loads(one.model_dump_json()) for one in result.messages)
        waiting = next((one for one in gated.values() if one.pending is not None), None)
        if waiting is None or waiting.pending is None:
            return Done({"text": result.messages[-1].to_text()}, external_events=told)
        native: JsonObject = {
            "agent": waiting.name,
            "state": read_state(write_state(dict(await runnable.save_state()))),
        }
        calls = await waiting.find_gated(waiting.pending.content)
        member = "" if runnable is waiting else waiting.name
        return FrameworkTurn(native, tuple(_read_call(one, member) for one in calls), external_events=told)


def _read_call(call: FunctionCall, member: str) -> RequestedCall:
    return RequestedCall(call_id=call.id, name=call.name, args_json=call.arguments, subagent=member)


def _not_done(call: FunctionCall) -> FunctionExecutionResult:
    return FunctionExecutionResult(content=_NOT_YET, name=call.name, call_id=call.id, is_error=True)


def _run_now(work: Callable[[], Any]) -> Any:
    """Run async work to its end, wherever this is called from: a module may be imported within a running loop."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(work())).result()
