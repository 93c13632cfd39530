"""Adapter for Pydantic AI.

    from sayso.adapters.pydantic_ai import gate
    bot = gate(agent, name="bot")

All calls of a turn are deferred together (`DeferredToolRequests`). The message history is the state.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
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
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded, UserError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolApproved
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, ToolsetTool, WrapperToolset
from pydantic_ai.usage import RunUsage

from sayso.adapters.base import Adapter, UsageMeter, define_tool, run_blocking
from sayso.adapters.reachability import reach
from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.guarding.frameworks import guard_framework
from sayso.guarding.runs import note_gated
from sayso.runner import protocol
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.judging import known_id
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, ToolFailed
from sayso.runner.tools import plain_json

_DEFERS = (
    "The tool {name} deferred its call while it ran, but calls are reviewed only before they start. "
    "Do not raise CallDeferred or ApprovalRequired in the tool."
)
_INNER = (
    "The tool {tool!r} calls an agent with tools of its own ({names}), which would run without review. "
    "Add them to the gated agent instead."
)


def gate(
    agent: Agent[Any, Any],
    *,
    name: str,
    deps: Callable[[], Any] | None = None,
    idempotent: Collection[str] = (),
    **options: Any,
) -> FrameworkAgent:
    """Return the agent with all its tools gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    `deps` creates the run's dependencies in each process. Calls of the tools in `idempotent` may run again after a
    crash; `options` are those of `Agent`. Raises `InvalidInput` for tools that cannot be gated or call other agents.
    """
    if agent.root_capability.get_toolset() is not None:
        raise InvalidInput(
            "The agent has a capability with tools, which cannot be gated. Pass them as toolsets= instead."
        )
    guard_framework("pydantic_ai")
    framework = PydanticAi(agent, deps or (lambda: None))
    tools = run_blocking(framework.list_tools)
    if external := [tool.name for tool in tools if tool.kind == "external"]:
        raise InvalidInput(f"The tool {external[0]!r} runs outside this process and cannot be gated. Remove it.")
    # The calls of an agent inside a tool would be ungated.
    toolsets = [toolset for toolset in _list_toolsets(agent) if isinstance(toolset, FunctionToolset)]
    for tool in (tool for toolset in toolsets for tool in toolset.tools.values()):
        for target in reach(tool.function):
            if isinstance(target, AbstractAgent) and (names := _list_names(target)):
                raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))
    definitions = {
        tool.name: define_tool(tool.name, tool.description, tool.parameters_json_schema, idempotent) for tool in tools
    }
    return protocol.build_agent(framework, name, definitions, **options)


@dataclass
class _Gated(WrapperToolset[Any]):
    """Toolset that runs approved calls and defers all others."""

    def __post_init__(self) -> None:
        note_gated(self)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run an approved call with its approved arguments. Defer others, even under the id of an earlier call."""
        executor = current_executor()
        call = executor.find(ctx.tool_call_id or "", name) if executor is not None and ctx.tool_call_approved else None
        if executor is None or call is None:
            raise ApprovalRequired

        native: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            approved = tool.args_validator.validate_python(args, context=ctx.validation_context)
            try:
                native.append(await self.wrapped.call_tool(name, approved, ctx, tool))
            except (CallDeferred, ApprovalRequired) as error:
                raise ToolFailed(_DEFERS.format(name=name)) from error
            return native[0]

        result = await executor.run(call, execute)
        if native and result.success and protocol.describe_edit(call) is None:
            return native[0]  # an image must stay an image for the model
        return protocol.describe_result(call, result)


@dataclass(frozen=True)
class PydanticAi(Adapter):
    """A Pydantic AI agent behind `sayso.runner.protocol.Framework`."""

    framework = "pydantic_ai"
    package = "pydantic-ai-slim"
    state_schema = "pydantic_ai.messages/2"
    faults = (UserError, UsageLimitExceeded, UnexpectedModelBehavior)

    agent: Agent[Any, Any]
    deps: Callable[[], Any]

    async def list_tools(self) -> list[Any]:
        context: RunContext[Any] = RunContext(deps=self.deps(), model=TestModel(), usage=RunUsage())
        return [tool.tool_def for tool in (await self._tools().get_tools(context)).values()]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return await self._run(text, None, None)

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        history = ModelMessagesTypeAdapter.validate_python(native["messages"])
        native_ids = {known_id(part.tool_call_id): part.tool_call_id for part in _find_calls(history)}
        answers = DeferredToolResults()
        for entry in executor.calls:
            refusal = protocol.describe_refusal(entry)
            answers.approvals[native_ids[entry.call.call_id]] = (
                ToolApproved(override_args=entry.call.args) if refusal is None else ToolDenied(refusal)
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
            messages = ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json")
            output: DeferredToolRequests = result.output
            # In the order of the model, which `approvals` does not keep.
            deferred = {call.tool_call_id for call in (*output.approvals, *output.calls)}
            calls = tuple(
                RequestedCall(
                    call_id=part.tool_call_id, name=part.tool_name, args_json=part.args_as_json_str(), subagent=""
                )
                for part in _find_calls(result.all_messages())
                if part.tool_call_id in deferred
            )
            # Model calls that are in no message have no model's name.
            meter, total = UsageMeter(), result.usage
            for message in result.new_messages():
                if isinstance(message, ModelResponse):
                    meter.note(message.model_name, message.usage.input_tokens, message.usage.output_tokens)
            meter.note_total(total.input_tokens, total.output_tokens, total.requests)
            usage = None if getattr(total, "unmeasured_requests", 0) else meter.read()
            return FrameworkTurn({"messages": messages}, calls, usage=usage)
        return Done({"text": result.output} if isinstance(result.output, str) else plain_json(result.output))


def _list_names(agent: AbstractAgent[Any, Any]) -> list[str]:
    """Return the tools that an agent runs itself. Dynamic toolsets are listed by their type."""
    names: list[str] = []
    for toolset in _list_toolsets(agent):
        names += toolset.tools if isinstance(toolset, FunctionToolset) else [type(toolset).__name__]
    has_capability = isinstance(agent, Agent) and agent.root_capability.get_toolset() is not None
    return [*names, "those of its capabilities"] if has_capability else names


def _list_toolsets(agent: AbstractAgent[Any, Any]) -> list[AbstractToolset[Any]]:
    toolsets: list[AbstractToolset[Any]] = []
    CombinedToolset(list(agent.toolsets)).apply(toolsets.append)
    return toolsets


def _find_calls(history: list[ModelMessage]) -> list[ToolCallPart]:
    last = next(message for message in reversed(history) if isinstance(message, ModelResponse))
    return [part for part in last.parts if isinstance(part, ToolCallPart)]
