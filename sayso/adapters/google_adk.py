"""Adapter for Google ADK.

    from sayso.adapters.google_adk import gate
    bot = gate(agent, name="bot")

A plugin asks for ADK's own confirmation of every call of a turn, before any of them runs. The events of the session
are the state. Confirmed calls run through the gate, with the approved arguments.
"""

import copy
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent, RunConfig
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import ToolThreadPoolConfig
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from sayso.adapters.base import NOT_REVIEWED, Adapter, UsageMeter, define_tool
from sayso.adapters.reachability import reach
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolDefinition
from sayso.errors import IllegalTransition, InvalidInput
from sayso.guarding.frameworks import guard_framework
from sayso.guarding.google_adk import CONTROLS
from sayso.guarding.runs import note_gated
from sayso.runner import protocol
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn
from sayso.runner.tools import plain_json

_CONFIRMATION = "adk_request_confirmation"
_NAME = "sayso"
"""The app and the user of the sessions, which live as long as a process drives the run."""

_WAITS = "This call waits for a decision."
_NOT_RUN = "Not run: it cannot be combined with other tool calls. Repeat it alone."
_INNER = (
    "The tool {tool!r} runs the agent {agent!r} with tools of its own ({names}), which would run without review. "
    "List that agent in sub_agents instead."
)
_KIND = (
    "The agent {name!r} is a {kind}, which ADK cannot resume in the middle. Gate an LlmAgent in chat mode whose "
    "sub_agents are such agents."
)
_HOSTED = "The tool {tool!r} of {agent!r} is no function that the model calls in this process. Remove it."
_TOOLSET = (
    "The agent {name!r} has a {kind}, whose tools are not known before the run. List its tools, or put Sayso's MCP "
    "proxy in front of an MCP server."
)
_CODE = "The agent {name!r} has a code_executor, which would run the model's code without review. Remove it."


def gate(
    agent: LlmAgent,
    *,
    name: str,
    state: Mapping[str, Any] | None = None,
    services: Mapping[str, Any] | None = None,
    plugins: Sequence[BasePlugin] = (),
    run_config: RunConfig | None = None,
    idempotent: Collection[str] = (),
    **options: Any,
) -> FrameworkAgent:
    """Return the agent, and its sub-agents, with all tools gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    `state` is the session's first state. `services` are arguments of ADK's `Runner`, such as `artifact_service`. Raises
    `InvalidInput` for agents, tools and toolsets that cannot be gated.
    """
    guard_framework("google.adk")
    definitions: dict[str, ToolDefinition] = {}
    gated = _gate_agent(agent, definitions, idempotent)
    config = run_config or RunConfig()
    if config.tool_thread_pool_config is None:  # else a plain def would block the worker's event loop
        config = config.model_copy(update={"tool_thread_pool_config": ToolThreadPoolConfig()})
    framework = GoogleAdk(
        gated, frozenset(definitions), dict(state or {}), dict(services or {}), tuple(plugins), config
    )
    return protocol.build_agent(framework, name, definitions, **options)


class GatePlugin(BasePlugin):
    """Holds every call of a gated tool until it is confirmed, and notes the tokens of each response."""

    def __init__(self, tools: Collection[str]) -> None:
        super().__init__(_NAME)
        self._tools = tools
        self._waiting: dict[str, bool] = {}
        self._ids: set[str] = set()
        self.meter = UsageMeter()

    def note_ids(self, events: Sequence[Event]) -> None:
        """Note the ids of earlier calls: ADK would take a second call with one of them for the first."""
        self._ids.update(call.id for event in events for call in event.get_function_calls() if call.id)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Note one response. ADK gives new ids to calls without one."""
        if llm_response.partial:
            return
        parts = llm_response.content.parts or () if llm_response.content is not None else ()
        calls = [part.function_call for part in parts if part.function_call is not None]
        for call in calls:
            if call.id in self._ids:
                call.id = None
            elif call.id:
                self._ids.add(call.id)
        self._waiting[callback_context.agent_name] = any(call.name in self._tools for call in calls)
        used = llm_response.usage_metadata
        given, made = (used.prompt_token_count, used.candidates_token_count) if used is not None else (None, None)
        thoughts = used.thoughts_token_count or 0 if used is not None else 0
        model = llm_response.model_version or callback_context._invocation_context.agent.canonical_model.model
        self.meter.note(model, given, made if made is None else made + thoughts)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Ask for a confirmation of a gated call, and show the approved arguments to the callbacks that follow.

        A handoff beside such a call does not run.
        """
        if isinstance(tool, CONTROLS):
            return {"error": _NOT_RUN} if self._waiting.get(tool_context.agent_name) else None
        if not isinstance(getattr(tool, "run_async", None), _Gate):
            return None
        if tool_context.tool_confirmation is not None:
            entry = _find_call(tool, tool_context)
            if entry is not None:
                tool_args.clear()
                tool_args.update(copy.deepcopy(entry.call.args))
            return None
        tool_context.request_confirmation(hint=_WAITS)
        tool_context.actions.skip_summarization = True  # else the model is asked at once
        return {"error": _WAITS}


def _find_call(tool: BaseTool, tool_context: ToolContext) -> BatchCall | None:
    executor = current_executor()
    return executor.find(tool_context.function_call_id or "", tool.name) if executor is not None else None


@dataclass(frozen=True)
class _Gate:
    """Runs approved calls of one tool with their approved arguments, and no others."""

    tool: BaseTool

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        executor, entry = current_executor(), _find_call(self.tool, tool_context)
        if executor is None or entry is None:
            raise IllegalTransition(NOT_REVIEWED.format(name=self.tool.name))
        native: list[Any] = []

        async def execute(approved: JsonObject) -> Any:
            native.append(await self.tool.run_async(args=dict(approved), tool_context=tool_context))
            return native[0]

        result = await executor.run(entry, execute)
        if native and result.success and protocol.describe_edit(entry) is None:
            return native[0]  # an image must stay an image for the model
        return protocol.describe_result(entry, result) if result.success else {"error": result.error}


@dataclass(frozen=True)
class GoogleAdk(Adapter):
    """A Google ADK agent behind `sayso.runner.protocol.Framework`."""

    framework = "google_adk"
    package = "google-adk"
    state_schema = "google_adk.events/1"
    faults = (LlmCallsLimitExceededError,)

    agent: LlmAgent
    tools: frozenset[str]
    state: Mapping[str, Any]
    services: Mapping[str, Any]
    plugins: tuple[BasePlugin, ...]
    run_config: RunConfig

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return await self._run(self.agent, new_id("session"), (), [types.Part(text=text)])

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Confirm all calls: the gate of each tool knows whether it was approved, and with which arguments."""
        saved: Any = native["events"]
        events = [Event.model_validate(event) for event in saved]
        answers = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id, name=_CONFIRMATION, response={"confirmed": True})
            )
            for _, call in _list_confirmations(events)
        ]
        if len(answers) != len(executor.calls):
            raise InvalidInput("The saved session waits for other calls than these. Cancel this run.")
        missing = {entry.call.name for entry in executor.calls} - self.tools
        agent = _add_removed(self.agent, missing) if missing else self.agent
        return await self._run(agent, str(native["session_id"]), events, answers)

    async def _run(
        self, agent: LlmAgent, session_id: str, events: Sequence[Event], parts: list[types.Part]
    ) -> FrameworkTurn | Done:
        plugin, sessions = GatePlugin(self.tools), InMemorySessionService()
        plugin.note_ids(events)
        app = App(name=_NAME, root_agent=agent, plugins=[plugin, *self.plugins])
        runner = Runner(app=app, session_service=sessions, **self.services)
        about = {"app_name": _NAME, "user_id": _NAME, "session_id": session_id}
        session = await sessions.create_session(**about, state=dict(self.state))
        for event in events:
            await sessions.append_event(session, event)
        running = runner.run_async(
            user_id=_NAME,
            session_id=session_id,
            new_message=types.Content(role="user", parts=parts),
            run_config=self.run_config,
        )
        new: list[Event] = []
        async with aclosing(running) as stream:
            async for event in stream:
                new.append(event)
        asked = _list_confirmations(new)
        if not asked:
            return _end(new)
        saved = await sessions.get_session(**about)
        assert saved is not None  # noqa: S101  the run has just used it
        raw = [event.model_dump(mode="json", exclude_none=True) for event in saved.events]
        return FrameworkTurn(
            {"session_id": session_id, "events": plain_json(raw)},
            tuple(self._read(author, call) for author, call in asked),
            usage=plugin.meter.read(),
        )

    def _read(self, author: str, confirmation: types.FunctionCall) -> RequestedCall:
        call: Any = (confirmation.args or {})["originalFunctionCall"]
        subagent = "" if author == self.agent.name else author
        args = json.dumps(call.get("args") or {})
        return RequestedCall(call_id=call["id"], name=call["name"], args_json=args, subagent=subagent)


def _list_confirmations(events: Sequence[Event]) -> list[tuple[str, types.FunctionCall]]:
    """Return the confirmations that were asked for last, each with the agent that waits, in the order of the model."""
    for event in reversed(events):
        if calls := [call for call in event.get_function_calls() if call.name == _CONFIRMATION]:
            return [(event.author, call) for call in calls]
    return []


def _end(events: Sequence[Event]) -> Done:
    """Return the last answer of a run that asked for nothing more, or its error."""
    for event in reversed(events):
        parts = event.content.parts or () if event.content is not None else ()
        if text := "".join(part.text for part in parts if part.text and not part.thought):
            return Done({"text": text})
        if event.error_code:
            return Done(None, RunStatus.FAILED, f"{event.error_code}: {event.error_message or 'The model failed.'}")
    return Done({"text": ""})


def _gate_agent(agent: Any, definitions: dict[str, ToolDefinition], idempotent: Collection[str]) -> LlmAgent:
    """Return a copy of the agent with gated tools. Its sub-agents are copied too."""
    if not isinstance(agent, LlmAgent) or agent.mode not in (None, "chat"):
        kind = type(agent).__name__ if not isinstance(agent, LlmAgent) else f"{agent.mode} agent"
        raise InvalidInput(_KIND.format(name=agent.name, kind=kind))
    if agent.code_executor is not None:
        raise InvalidInput(_CODE.format(name=agent.name))
    gated = []
    for given in agent.tools:
        if isinstance(given, BaseToolset):
            raise InvalidInput(_TOOLSET.format(name=agent.name, kind=type(given).__name__))
        tool = given if isinstance(given, BaseTool) else FunctionTool(given)
        if tool.is_long_running or tool._get_declaration() is None:
            raise InvalidInput(_HOSTED.format(tool=tool.name, agent=agent.name))
        for inner in _list_inner(tool):
            raise InvalidInput(_INNER.format(tool=tool.name, agent=inner.name, names=", ".join(_list_names(inner))))
        definition = _define(tool, idempotent)
        if definitions.setdefault(tool.name, definition) != definition:
            raise InvalidInput(f"Two tools are named {tool.name!r}. Rename one of them.")
        guarded = copy.copy(tool)
        guarded.run_async = _Gate(tool)
        gated.append(note_gated(guarded))
    inner_agents = [_gate_agent(inner, definitions, idempotent) for inner in agent.sub_agents]
    return agent.clone(update={"tools": gated, "sub_agents": inner_agents})


def _add_removed(agent: Any, names: Collection[str]) -> LlmAgent:
    """Return the agent with tools in place of those that it no longer has: ADK confirms no call without its tool."""
    removed: list[Any] = [BaseTool(name=name, description="") for name in names]
    for tool in removed:
        tool.run_async = _Gate(tool)
    inner_agents = [_add_removed(inner, names) for inner in agent.sub_agents]
    copied: LlmAgent = agent.clone(
        update={"tools": [*agent.tools, *map(note_gated, removed)], "sub_agents": inner_agents}
    )
    return copied


def _list_inner(tool: BaseTool) -> Iterator[BaseAgent]:
    """Yield the agents with tools that a tool could run."""
    for target in [tool, *reach(getattr(tool, "func", tool.run_async))]:
        agent = target.agent if isinstance(target, AgentTool) else target
        if isinstance(agent, BaseAgent) and _list_names(agent):
            yield agent


def _list_names(agent: BaseAgent) -> list[str]:
    tools = getattr(agent, "tools", ())
    names = [str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__)) for tool in tools]
    code = ["its code_executor"] if getattr(agent, "code_executor", None) is not None else []
    return [*names, *code, *(name for inner in agent.sub_agents for name in _list_names(inner))]


def _define(tool: BaseTool, idempotent: Collection[str]) -> ToolDefinition:
    declared = tool._get_declaration()
    assert declared is not None  # noqa: S101  checked when the tool was gated
    schema: Any = declared.parameters_json_schema
    if schema is None and declared.parameters is not None:
        schema = declared.parameters.json_schema.model_dump(mode="json", exclude_none=True)
    parameters = {"type": "object", "properties": {}, "additionalProperties": False, **(schema or {})}
    return define_tool(tool.name, declared.description, parameters, idempotent)
