"""Have every tool call of an OpenAI Agents SDK agent judged before it runs, wherever the run goes on afterwards.

    from sayso.adapters.openai_agents import gate
    bot = gate(agent, name="bot")

All function tools ask for approval, so the run stops before any call of a turn; `RunState` as JSON is the state. The
SDK cannot run a call with other arguments than the model's, so the approved ones are put in where the tool begins.
"""

import dataclasses
import json
from collections.abc import Callable, Collection
from importlib.metadata import version
from typing import Any

from agents import Agent, FunctionTool, RunConfig, Runner, RunState, ToolInputGuardrailTripwireTriggered
from agents.items import ToolApprovalItem
from agents.run_config import DEFAULT_MAX_TURNS
from agents.tool_context import ToolContext

from sayso.adapters.openai_agents.guardrails import gate_guardrail, put_in
from sayso.adapters.reachability import reach
from sayso.canonical_json import JsonObject
from sayso.errors import IllegalTransition, InvalidInput
from sayso.formats.tool_responses import note_edit
from sayso.records.suspensions import Origin, RunStatus
from sayso.records.tool_calls import ToolDefinition, ToolResult
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.judging import known_id
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import (
    Done,
    FrameworkAgent,
    FrameworkTurn,
    build_agent,
    describe_edit,
    describe_refusal,
    describe_result,
)
from sayso.runner.tools import plain_json

Refusal = Callable[[str, str], str]
"""What the model is told of a call that does not run: from the tool's name and the reason."""

_INNER = (
    "The tool {tool!r} runs an agent that has tools of its own ({names}), and nobody would be asked about those. "
    "Give them to the gated agent, or name {agent!r} in its handoffs."
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
    """Return the agent, with the agents it hands off to, with all their tools behind Sayso.

    `context` makes the run's context anew wherever it goes on; it is not saved. `max_turns` are those of the whole run,
    however often it waits; None sets no limit. `describe_refused` writes what the model
    is told of a call that was denied or failed, such as `tool_responses.describe_refused`. Raises `InvalidInput` for tools
    that run elsewhere, or that run another agent with tools.
    """
    tools: dict[str, FunctionTool] = {}
    gated = _gate_agent(agent, tools, {}, describe_refused)
    definitions = {
        one.name: ToolDefinition(
            name=one.name,
            description=one.description or "",
            parameters=one.params_json_schema,
            idempotent=one.name in idempotent,
        )
        for one in tools.values()
    }
    tell = describe_refused or (lambda _tool, why: why)
    framework = OpenAiAgents(gated, context or (lambda: None), run_config, tell, max_turns)
    return build_agent(framework, name, definitions, **options)


@dataclasses.dataclass(frozen=True)
class OpenAiAgents:
    """An agent of the OpenAI Agents SDK behind `sayso.runner.protocol.Framework`."""

    agent: Agent[Any]
    context: Callable[[], Any]
    run_config: RunConfig | None
    describe_refused: Refusal
    max_turns: int | None = DEFAULT_MAX_TURNS

    @property
    def origin(self) -> Origin:
        """Which software this is, and how its state is written."""
        return Origin(
            framework="openai_agents",
            framework_version=version("openai-agents"),
            adapter="sayso.adapters.openai_agents",
            state_schema="openai_agents.run_state/1",
        )

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run up to the first turn that calls tools, or to the end."""
        return await self._run(text)

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return None: the state is all there is to go on from, and it was kept."""
        return None

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Approve or reject every pending call, and run on."""
        state = await RunState.from_json(self.agent, native, context_override=self.context())
        pending = {_id_of(item): item for item in state.get_interruptions()}
        for one in executor.calls:
            item = pending.get((one.call.call_id, one.call.name))
            if item is None:
                raise InvalidInput(f"The saved run does not wait for {one.call.name}; it cannot go on with its answer.")
            refusal = describe_refusal(one)
            if refusal is None:
                state.approve(item)
            else:
                state.reject(item, rejection_message=self.describe_refused(one.call.name, refusal))
        return await self._run(state)

    async def _run(self, start: str | RunState[Any, Any]) -> FrameworkTurn | Done:
        context = self.context() if isinstance(start, str) else None
        try:
            result = await Runner.run(
                self.agent, start, context=context, run_config=self.run_config, max_turns=self.max_turns
            )
        except ToolInputGuardrailTripwireTriggered as halt:
            return Done(None, RunStatus.FAILED, f"The guardrail {halt.guardrail.get_name()} stopped the run.")
        if result.interruptions:
            native = result.to_state().to_json(context_serializer=lambda _: {})
            return FrameworkTurn(native, tuple(_read_call(one, self.agent.name) for one in result.interruptions))
        output = result.final_output
        return Done({"text": output} if isinstance(output, str) else plain_json(output))


def _gate_agent(
    agent: Agent[Any], tools: dict[str, FunctionTool], done: dict[int, Agent[Any]], tell: Refusal | None
) -> Agent[Any]:
    """Return a copy of the agent whose tools wait for leave, and of every agent that it can hand off to."""
    if id(agent) in done:
        return done[id(agent)]
    if agent.mcp_servers:
        raise InvalidInput(f"The agent {agent.name!r} has MCP servers; put Sayso's MCP proxy in front of them instead.")
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool):
            raise InvalidInput(f"The tool {tool.name!r} of {agent.name!r} does not run here, so it cannot be gated.")
        if tool.name in tools and tools[tool.name] is not tool:
            raise InvalidInput(f"Two tools are named {tool.name!r}; rename one of them.")
        _check_inner(tool)
        tools[tool.name] = tool
    gated = done[id(agent)] = agent.clone(
        tools=[_gate_tool(tool, tell) for tool in agent.tools if isinstance(tool, FunctionTool)]
    )
    handoffs: list[Any] = []
    for one in agent.handoffs:
        if not isinstance(one, Agent):
            raise InvalidInput(
                f"{agent.name!r} hands off through {one.tool_name!r}; name the agent itself in handoffs."
            )
        handoffs.append(_gate_agent(one, tools, done, tell))
    gated.handoffs = handoffs
    return gated


def _check_inner(tool: FunctionTool) -> None:
    """Refuse a tool that runs another agent whose tools nobody would be asked about."""
    for found in reach(tool.on_invoke_tool):
        if isinstance(found, Agent) and (names := _list_names(found, set())):
            raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names), agent=found.name))


def _list_names(agent: Agent[Any], seen: set[int]) -> list[str]:
    """Return the tools that an agent, and those that it hands off to, would run by themselves."""
    if id(agent) in seen:
        return []
    seen.add(id(agent))
    names = [*(one.name for one in agent.tools), *(one.name for one in agent.mcp_servers)]
    for one in agent.handoffs:
        names += _list_names(one, seen) if isinstance(one, Agent) else [one.tool_name]
    return names


def _gate_tool(tool: FunctionTool, tell: Refusal | None) -> FunctionTool:
    """Return the tool so that it begins through the gate alone, and its input guardrails check what really runs."""

    async def invoke(context: ToolContext[Any], _args_json: str) -> Any:
        executor = current_executor()
        one = executor.find(context.tool_call_id, tool.name) if executor is not None else None
        if executor is None or one is None:
            raise IllegalTransition(f"Nobody was asked about this call of {tool.name}; it is not run.")

        async def execute(args: JsonObject) -> Any:
            return await tool.on_invoke_tool(put_in(context, args), json.dumps(args))

        return _tell(one, await executor.run(one, execute), tell)

    guardrails = [gate_guardrail(one, tool.name) for one in tool.tool_input_guardrails or ()]
    return dataclasses.replace(
        tool, on_invoke_tool=invoke, needs_approval=True, tool_input_guardrails=guardrails or None
    )


def _tell(one: BatchCall, result: ToolResult, tell: Refusal | None) -> Any:
    """Return what the model is told of a call that ran; an envelope stays one, and with `tell` a failure is one too."""
    if not result.success:
        return tell(one.call.name, result.error or "It failed.") if tell else json.dumps(result.tool_message)
    note = describe_edit(one)
    noted = note_edit(result.output, note) if note is not None else None
    return noted if noted is not None else describe_result(one, result)


def _id_of(item: ToolApprovalItem) -> tuple[str, str]:
    return known_id(str(item.call_id)), str(item.name)


def _read_call(item: ToolApprovalItem, root: str) -> RequestedCall:
    """Return a call; one of an agent that the run was handed to is a sub-agent's."""
    subagent = "" if item.agent.name == root else item.agent.name
    return RequestedCall(
        call_id=str(item.call_id), name=str(item.name), args_json=item.arguments or "{}", subagent=subagent
    )
