"""Have every tool call of a Pydantic AI agent judged before it runs, wherever the run goes on afterwards.

    from sayso.adapters.pydantic_ai import gate
    bot = gate(agent, name="bot")

All calls of a turn are deferred together (`DeferredToolRequests`) and answered together. The history is the state.
"""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolDenied,
)
from pydantic_ai.agent import AbstractAgent, AgentRunResult
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolApproved
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, ToolsetTool, WrapperToolset
from pydantic_ai.usage import RunUsage

from sayso.adapters.reachability import reach
from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.records.suspensions import Origin
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.judging import known_id
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import (
    Done,
    FrameworkAgent,
    FrameworkTurn,
    ToolFailed,
    build_agent,
    describe_edit,
    describe_refusal,
    describe_result,
)
from sayso.runner.tools import plain_json

_DEFERS = (
    "The tool {name} put its call off in the middle; Sayso asks before a tool alone. Have it raise nothing to defer."
)
_INNER = (
    "The tool {tool!r} calls an agent that has tools of its own ({names}), and nobody would be asked about those. "
    "Give them to the gated agent itself."
)


def gate(
    agent: Agent[Any, Any],
    *,
    name: str,
    deps: Callable[[], Any] | None = None,
    idempotent: Collection[str] = (),
    **options: Any,
) -> FrameworkAgent:
    """Return the agent with all its tools behind Sayso, for `SAYSO_AGENTS` and for `start`.

    `deps` makes the run's dependencies anew wherever it goes on. Calls of the tools in `idempotent` may be run again
    after a crash. The other options are those of `sayso.runner.agents.Agent`. Raises `InvalidInput` for tools that cannot be
    gated, and for those that call an agent with tools of its own.
    """
    if agent.root_capability.get_toolset() is not None:
        raise InvalidInput(
            "A capability of the agent brings tools, which cannot be gated. Give them as toolsets= instead."
        )
    framework = PydanticAi(agent, deps or (lambda: None))
    tools = _run_now(framework.list_tools)
    if outside := [one.name for one in tools if one.kind == "external"]:
        raise InvalidInput(f"The tool {outside[0]!r} does not run here, so it cannot be gated.")
    _check_inner(agent)
    definitions = {
        one.name: ToolDefinition(
            name=one.name,
            description=one.description or "",
            parameters=one.parameters_json_schema,
            idempotent=one.name in idempotent,
        )
        for one in tools
    }
    return build_agent(framework, name, definitions, **options)


@dataclass
class _Gated(WrapperToolset[Any]):
    """Tools of which none starts without leave: what was not asked about yet is deferred."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run the call through the gate, with the approved arguments even where a hook changed them, or defer it.

        A call of a later turn is deferred even when its model gives it the id of an earlier one.
        """
        executor = current_executor()
        asked = executor.find(ctx.tool_call_id or "", name) if executor is not None and ctx.tool_call_approved else None
        if executor is None or asked is None:
            raise ApprovalRequired

        native: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            approved = tool.args_validator.validate_python(args, context=ctx.validation_context)
            try:
                native.append(await self.wrapped.call_tool(name, approved, ctx, tool))
            except (CallDeferred, ApprovalRequired) as error:
                raise ToolFailed(_DEFERS.format(name=name)) from error
            return native[0]

        result = await executor.run(asked, execute)
        if native and result.success and describe_edit(asked) is None:
            return native[0]  # such as an image, which the model is to see and not to read
        return describe_result(asked, result)


@dataclass(frozen=True)
class PydanticAi:
    """A Pydantic AI agent behind `sayso.runner.protocol.Framework`."""

    agent: Agent[Any, Any]
    deps: Callable[[], Any]

    @property
    def origin(self) -> Origin:
        """Which software this is, and how its state is written."""
        return Origin(
            framework="pydantic_ai",
            framework_version=version("pydantic-ai-slim"),
            adapter="sayso.adapters.pydantic_ai",
            state_schema="pydantic_ai.messages/2",
        )

    async def list_tools(self) -> list[Any]:
        """Return the framework's own definitions of all tools."""
        context: RunContext[Any] = RunContext(deps=self.deps(), model=TestModel(), usage=RunUsage())
        return [one.tool_def for one in (await self._tools().get_tools(context)).values()]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run up to the first turn that calls tools, or to the end."""
        return await self._run(text, None, None)

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return None: the state is all there is to go on from, and it was kept."""
        return None

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Answer all deferred calls together and run on."""
        history = ModelMessagesTypeAdapter.validate_python(native["messages"])
        own = {known_id(part.tool_call_id): part.tool_call_id for part in _find_calls(history)}
        answers = DeferredToolResults()
        for one in executor.calls:
            refusal = describe_refusal(one)
            answers.approvals[own[one.call.call_id]] = (
                ToolApproved(override_args=one.call.args) if refusal is None else ToolDenied(refusal)
            )
        return await self._run(None, history, answers)

    def _tools(self) -> AbstractToolset[Any]:
        return _Gated(CombinedToolset(list(self.agent.toolsets)))

    async def _run(self, text: str | None, history: Any, answers: DeferredToolResults | None) -> FrameworkTurn | Done:
        gated = self._tools()
        with self.agent.override(toolsets=[gated], tools=[]):
            result = await self.agent.run(
                text,
                message_history=history,
                deferred_tool_results=answers,
                output_type=[self.agent.output_type, DeferredToolRequests],
                deps=self.deps(),
            )
        if isinstance(result.output, DeferredToolRequests):
            return FrameworkTurn(_write(result), _read_calls(result))
        return Done({"text": result.output} if isinstance(result.output, str) else plain_json(result.output))


def _check_inner(agent: Agent[Any, Any]) -> None:
    """Refuse a tool that calls another agent whose tools nobody would be asked about."""
    leaves = [leaf for leaf in _list_leaves(agent) if isinstance(leaf, FunctionToolset)]
    for tool in (tool for leaf in leaves for tool in leaf.tools.values()):
        for found in reach(tool.function):
            if isinstance(found, AbstractAgent) and (names := _list_names(found)):
                raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))


def _list_names(agent: AbstractAgent[Any, Any]) -> list[str]:
    """Return the tools that an agent would run by itself; of toolsets that only list them later, the kind."""
    names: list[str] = []
    for leaf in _list_leaves(agent):
        names += leaf.tools if isinstance(leaf, FunctionToolset) else [type(leaf).__name__]
    brings = isinstance(agent, Agent) and agent.root_capability.get_toolset() is not None
    return [*names, "those of its capabilities"] if brings else names


def _list_leaves(agent: AbstractAgent[Any, Any]) -> list[AbstractToolset[Any]]:
    leaves: list[AbstractToolset[Any]] = []
    CombinedToolset(list(agent.toolsets)).apply(leaves.append)
    return leaves


def _write(result: AgentRunResult[Any]) -> JsonObject:
    return {"messages": ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json")}


def _read_calls(result: AgentRunResult[Any]) -> tuple[RequestedCall, ...]:
    """Return the deferred calls in the model's own order; that of `approvals` is another."""
    output: DeferredToolRequests = result.output
    deferred = {one.tool_call_id for one in (*output.approvals, *output.calls)}
    return tuple(
        RequestedCall(call_id=part.tool_call_id, name=part.tool_name, args_json=part.args_as_json_str(), subagent="")
        for part in _find_calls(result.all_messages())
        if part.tool_call_id in deferred
    )


def _find_calls(history: list[ModelMessage]) -> list[ToolCallPart]:
    """Return the calls of the model's last answer."""
    last = next(one for one in reversed(history) if isinstance(one, ModelResponse))
    return [part for part in last.parts if isinstance(part, ToolCallPart)]


def _run_now(work: Callable[[], Any]) -> Any:
    """Run async work to its end, wherever this is called from: a module may be imported within a running loop."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(work())).result()
