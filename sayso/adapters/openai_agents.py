"""Adapter for the OpenAI Agents SDK.

    from sayso.adapters.openai_agents import gate
    bot = gate(agent, name="bot")

All function tools need approval, so the run stops before any call of a turn. `RunState` as JSON is the state. The
SDK runs calls only with the model's arguments, so the gated tool replaces them with the approved ones, to which the
input guardrails of the tool apply.
"""

import copy
import dataclasses
import json
from collections.abc import Callable, Collection
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    RunState,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolInputGuardrailTripwireTriggered,
)
from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRefusalError,
    OutputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    UserError,
)
from agents.models import get_default_model
from agents.run_config import DEFAULT_MAX_TURNS
from agents.tool_context import ToolContext

from sayso.adapters.base import NOT_REVIEWED, Adapter, UsageMeter, define_tool
from sayso.adapters.reachability import reach
from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import ModelUsage, RunStatus
from sayso.errors import IllegalTransition, InvalidInput
from sayso.guarding.frameworks import guard_framework
from sayso.guarding.runs import note_gated
from sayso.runner import protocol
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.judging import known_id
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, ToolFailed
from sayso.runner.tools import plain_json
from sayso.timeline.tool_responses import note_edit

Total = tuple[int, int, int]
"""Input tokens, output tokens and model calls."""

NOTHING: Total = (0, 0, 0)


class UsageHooks(RunHooks[Any]):
    """Notes the tokens of each response under the name of its model."""

    def __init__(self, run_config: RunConfig | None) -> None:
        self._model = run_config.model if run_config is not None else None
        self._meter = UsageMeter()

    async def on_llm_end(self, _context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Note one response. Its usage counts the attempts that failed before it."""
        used, model = response.usage, self._model or agent.model or get_default_model()
        name = model if isinstance(model, str) else getattr(model, "model", None)
        self._meter.note(name, used.input_tokens, used.output_tokens, max(1, used.requests))

    def read(self, native: JsonObject, before: Total) -> tuple[ModelUsage, ...] | None:
        """Return the usage since the run had the total `before`. Agents inside of tools count without a name."""
        after = read_total(native)
        self._meter.note_total(after[0] - before[0], after[1] - before[1], after[2] - before[2])
        return self._meter.read()


def read_total(native: JsonObject) -> Total:
    """Return what a saved run has used so far."""
    context: Any = native["context"]
    used = context["usage"]
    return used["input_tokens"], used["output_tokens"], used["requests"]


_REFUSED = "The guardrail {name} refused the arguments, so the call did not run."


def gate_guardrail(guardrail: ToolInputGuardrail[Any], tool: str) -> ToolInputGuardrail[Any]:
    """Return a guardrail that checks the approved arguments, and the model's before. Refusal is the result."""
    name = guardrail.get_name()

    async def check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        executor = current_executor()
        entry = executor.find(data.context.tool_call_id, tool) if executor is not None else None
        if executor is None or entry is None:
            return await guardrail.run(data)
        if entry.result is not None:
            return ToolGuardrailFunctionOutput.allow()  # nothing runs
        output = await guardrail.run(
            dataclasses.replace(data, context=replace_arguments(data.context, entry.call.args))
        )

        async def refuse(_args: JsonObject) -> Any:
            raise ToolFailed(str(output.behavior.get("message") or _REFUSED.format(name=name)))

        if output.behavior["type"] != "allow":
            await executor.run(entry, refuse)
        return output

    return ToolInputGuardrail(guardrail_function=check, name=name)


def replace_arguments(context: ToolContext[Any], args: JsonObject) -> ToolContext[Any]:
    """Return the call's context with these arguments instead of the model's."""
    if context.tool_arguments and json.loads(context.tool_arguments) == args:
        return context
    approved = copy.copy(context)
    approved.tool_arguments = json.dumps(args)
    if context.tool_call is not None:
        approved.tool_call = context.tool_call.model_copy(update={"arguments": approved.tool_arguments})
    approved._function_tool_arguments = None
    return approved


Refusal = Callable[[str, str], str]
"""Writes the text that tells the model that a call did not run, from the tool's name and the reason."""

_TRIPWIRES = (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered, ToolOutputGuardrailTripwireTriggered)
_INNER = (
    "The tool {tool!r} runs an agent with tools of its own ({names}), which would run without review. "
    "Add them to the gated agent, or list {agent!r} in its handoffs."
)


def gate(
    agent: Agent[Any],
    *,
    name: str,
    context: Callable[[], Any] | None = None,
    idempotent: Collection[str] = (),
    run_config: RunConfig | None = None,
    max_turns: int | None = DEFAULT_MAX_TURNS,
    describe_refused: Refusal | None = None,
    **options: Any,
) -> FrameworkAgent:
    """Return the agent, and the agents it hands off to, with all tools gated by Sayso.

    `context` creates the run's context in each process; it is not saved. `max_turns` counts across suspensions; None
    sets no limit. `describe_refused` writes what the model sees of a denied or failed call. Raises `InvalidInput` for
    hosted tools, and for tools that run an agent with tools of its own.
    """
    guard_framework("agents")
    tools: dict[str, FunctionTool] = {}
    gated = _gate_agent(agent, tools, {}, describe_refused)
    definitions = {
        tool.name: define_tool(tool.name, tool.description, tool.params_json_schema, idempotent)
        for tool in tools.values()
    }
    describe = describe_refused or (lambda _tool, reason: reason)
    framework = OpenAiAgents(gated, context or (lambda: None), run_config, describe, max_turns)
    return protocol.build_agent(framework, name, definitions, **options)


@dataclasses.dataclass(frozen=True)
class OpenAiAgents(Adapter):
    """An agent of the OpenAI Agents SDK behind `sayso.runner.protocol.Framework`."""

    framework = "openai_agents"
    package = "openai-agents"
    state_schema = "openai_agents.run_state/1"
    faults = (UserError, MaxTurnsExceeded, ModelBehaviorError, ModelRefusalError, *_TRIPWIRES)

    agent: Agent[Any]
    context: Callable[[], Any]
    run_config: RunConfig | None
    describe_refused: Refusal
    max_turns: int | None = DEFAULT_MAX_TURNS

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return await self._run(text)

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        state = await RunState.from_json(self.agent, native, context_override=self.context())
        pending = {(known_id(str(item.call_id)), str(item.name)): item for item in state.get_interruptions()}
        for entry in executor.calls:
            item = pending.get((entry.call.call_id, entry.call.name))
            if item is None:
                raise InvalidInput(f"The saved run does not wait for {entry.call.name}. Cancel this run.")
            refusal = protocol.describe_refusal(entry)
            if refusal is None:
                state.approve(item)
            else:
                state.reject(item, rejection_message=self.describe_refused(entry.call.name, refusal))
        return await self._run(state, read_total(native))

    async def _run(self, start: str | RunState[Any, Any], before: Total = NOTHING) -> FrameworkTurn | Done:
        context = self.context() if isinstance(start, str) else None
        hooks = UsageHooks(self.run_config)
        try:
            result = await Runner.run(
                self.agent, start, context=context, hooks=hooks, run_config=self.run_config, max_turns=self.max_turns
            )
        except ToolInputGuardrailTripwireTriggered as stop:
            return Done(None, RunStatus.FAILED, f"The guardrail {stop.guardrail.get_name()} stopped the run.")
        if result.interruptions:
            native = result.to_state().to_json(context_serializer=lambda _: {})
            calls = tuple(
                RequestedCall(
                    call_id=str(item.call_id),
                    name=str(item.name),
                    args_json=item.arguments or "{}",
                    subagent="" if item.agent.name == self.agent.name else item.agent.name,
                )
                for item in result.interruptions
            )
            return FrameworkTurn(native, calls, usage=hooks.read(native, before))
        output = result.final_output
        return Done({"text": output} if isinstance(output, str) else plain_json(output))


def _gate_agent(
    agent: Agent[Any], tools: dict[str, FunctionTool], done: dict[int, Agent[Any]], describe: Refusal | None
) -> Agent[Any]:
    """Return a copy of the agent with gated tools. The agents it hands off to are copied too."""
    if id(agent) in done:
        return done[id(agent)]
    if agent.mcp_servers:
        raise InvalidInput(f"The agent {agent.name!r} has MCP servers. Put Sayso's MCP proxy in front of them instead.")
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool):
            raise InvalidInput(f"The tool {tool.name!r} of {agent.name!r} is hosted and cannot be gated. Remove it.")
        if tool.name in tools and tools[tool.name] is not tool:
            raise InvalidInput(f"Two tools are named {tool.name!r}. Rename one of them.")
        for target in reach(tool.on_invoke_tool):
            if isinstance(target, Agent) and (names := _list_names(target, set())):
                raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names), agent=target.name))
        tools[tool.name] = tool
    gated = done[id(agent)] = agent.clone(
        tools=[_gate_tool(tool, describe) for tool in agent.tools if isinstance(tool, FunctionTool)]
    )
    handoffs: list[Any] = []
    for target in agent.handoffs:
        if not isinstance(target, Agent):
            raise InvalidInput(
                f"{agent.name!r} hands off through {target.tool_name!r}. List the agent itself in handoffs."
            )
        handoffs.append(_gate_agent(target, tools, done, describe))
    gated.handoffs = handoffs
    return gated


def _list_names(agent: Agent[Any], seen: set[int]) -> list[str]:
    if id(agent) in seen:
        return []
    seen.add(id(agent))
    names = [*(tool.name for tool in agent.tools), *(server.name for server in agent.mcp_servers)]
    for target in agent.handoffs:
        names += _list_names(target, seen) if isinstance(target, Agent) else [target.tool_name]
    return names


def _gate_tool(tool: FunctionTool, describe: Refusal | None) -> FunctionTool:
    """Return the tool such that it runs only through the gate. Its guardrails check the approved arguments."""

    async def invoke(context: ToolContext[Any], _args_json: str) -> Any:
        executor = current_executor()
        entry = executor.find(context.tool_call_id, tool.name) if executor is not None else None
        if executor is None or entry is None:
            raise IllegalTransition(NOT_REVIEWED.format(name=tool.name))

        async def execute(args: JsonObject) -> Any:
            return await tool.on_invoke_tool(replace_arguments(context, args), json.dumps(args))

        # An envelope stays one. With `describe`, so does a failure.
        result = await executor.run(entry, execute)
        if not result.success:
            return (
                describe(entry.call.name, result.error or "It failed.") if describe else json.dumps(result.tool_message)
            )
        note = protocol.describe_edit(entry)
        noted = note_edit(result.output, note) if note is not None else None
        return noted if noted is not None else protocol.describe_result(entry, result)

    guardrails = [gate_guardrail(guardrail, tool.name) for guardrail in tool.tool_input_guardrails or ()]
    return dataclasses.replace(
        tool, on_invoke_tool=note_gated(invoke), needs_approval=True, tool_input_guardrails=guardrails or None
    )
