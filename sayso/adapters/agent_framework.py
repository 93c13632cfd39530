"""Adapter for Microsoft's Agent Framework.

    from sayso.adapters.agent_framework import gate
    bot = gate(agent, name="bot")

All tools need approval, so the run stops before any call of a turn. The session as JSON is the state. The framework
takes the arguments of a call from its session only, so edited ones are written there, where middleware sees them.
"""

import copy
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_framework import (
    SKIP_PARSING,
    Agent,
    AgentSession,
    BaseAgent,
    ChatContext,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    MiddlewareFailure,
    RawAgent,
    chat_middleware,
    function_middleware,
)
from agent_framework.exceptions import (
    AgentInvalidRequestException,
    ChatClientContentFilterException,
    ChatClientInvalidRequestException,
    UserInputRequiredException,
)

from sayso.adapters.base import NOT_REVIEWED, Adapter, UsageMeter, define_tool
from sayso.adapters.reachability import reach
from sayso.core.canonical_json import JsonObject
from sayso.errors import IllegalTransition, InvalidInput
from sayso.guarding.frameworks import guard_framework
from sayso.guarding.runs import note_gated
from sayso.runner import protocol
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.judging import known_id
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, ToolFailed
from sayso.runner.tools import plain_json

_ASKS = "The tool {name} asked for input while it ran, but calls are reviewed only before they start."
_INNER = (
    "The tool {tool!r} runs an agent with tools of its own ({names}), which would run without review. "
    "Add them to the gated agent instead."
)
_NOT_RUN = "The agent waits for an answer of type {kind} that no gated tool asked for. Remove the tool that asks."
_NO_SUCH_TOOL = "There is no such tool."


def gate(agent: Agent[Any], *, name: str, idempotent: Collection[str] = (), **options: Any) -> FrameworkAgent:
    """Return the agent with all its tools gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    Calls of the tools in `idempotent` may run again after a crash; `options` are those of `sayso.runner.agents.Agent`.
    Raises `InvalidInput` for tools that cannot be gated or run agents with tools of their own.
    """
    guard_framework("agent_framework")
    client = agent.client
    settings = getattr(client, "function_invocation_configuration", {})
    if not isinstance(client, FunctionInvocationLayer) or not settings.get("enabled", True):
        raise InvalidInput(f"The client of {name!r} does not run tools. Use one with FunctionInvocationLayer enabled.")
    if agent.mcp_tools:
        raise InvalidInput(f"The agent {name!r} has MCP servers. Put Sayso's MCP proxy in front of them instead.")
    tools = {tool.name: tool for tool in map(_check_tool, agent.default_options.get("tools") or ())}
    gated = copy.copy(agent)
    gated.default_options = {**agent.default_options, "tools": [gate_tool(tool) for tool in tools.values()]}
    gated.context_providers = list(agent.context_providers)  # a run may add one
    gated.middleware = [function_middleware(give_results), *(agent.middleware or ())]
    definitions = {
        tool.name: define_tool(tool.name, tool.description, tool.parameters(), idempotent) for tool in tools.values()
    }
    return protocol.build_agent(AgentFramework(gated, frozenset(tools)), name, definitions, **options)


async def give_results(context: FunctionInvocationContext, call_next: Callable[[], Any]) -> None:
    """Give the model the results of calls that do not run. Other middleware and the tool see none of these.

    As it is there, the framework tells tools the id of their call.
    """
    executor, entry = find_call(context)
    if executor is None or entry is None or entry.result is None:
        await call_next()
    else:
        context.result = describe(entry, await executor.run(entry, _run_nothing))


class Meter(UsageMeter):
    """Notes the tokens of each response under the name of its model."""

    asked = False

    def make_middleware(self) -> Any:
        """Return what notes each response. Clients without a layer for it ignore it."""

        async def note(context: ChatContext, call_next: Callable[[], Any]) -> None:
            await call_next()
            self.note_response(context.result)

        return chat_middleware(note)

    def note_response(self, response: Any) -> None:
        """Add the usage of a response."""
        self.asked = True
        used = getattr(response, "usage_details", None) or {}
        name = getattr(response, "model", None)
        self.note(name, used.get("input_token_count"), used.get("output_token_count"))


@dataclass(frozen=True)
class AgentFramework(Adapter):
    """An agent of Agent Framework behind `sayso.runner.protocol.Framework`."""

    framework = "agent_framework"
    package = "agent-framework-core"
    state_schema = "agent_framework.session/1"
    faults = (
        MiddlewareFailure,
        AgentInvalidRequestException,
        ChatClientInvalidRequestException,
        ChatClientContentFilterException,
    )

    agent: Agent[Any]
    tools: frozenset[str]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return await self._run(text, AgentSession())

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        saved: Any = copy.deepcopy(native)
        entries = {entry.call.call_id: entry for entry in executor.calls}
        requests = [Content.from_dict(request) for request in saved["requests"]]
        write_arguments(saved["session"], {request.id: entries[known_id(name_call(request))] for request in requests})
        answers = [request.to_function_approval_response(True) for request in requests]  # the gate refuses the denied
        unknown = {entry.call.name for entry in executor.calls} - self.tools
        return await self._run(Message("user", answers), AgentSession.from_dict(saved["session"]), sorted(unknown))

    async def _run(
        self, start: str | Message, session: AgentSession, unknown: Iterable[str] = ()
    ) -> FrameworkTurn | Done:
        meter, stand_ins = Meter(), [make_unknown(name) for name in unknown]
        response = await self.agent.run(
            start, session=session, tools=stand_ins or None, middleware=[meter.make_middleware()]
        )
        requests = response.user_input_requests
        if not requests:
            return Done({"text": response.text} if response.value is None else plain_json(response.value))
        for request in requests:
            if request.type != "function_approval_request" or request.function_call.hosted:
                raise InvalidInput(_NOT_RUN.format(kind=request.type))
        if not meter.asked:  # a client without chat middleware
            meter.note_response(response)
        saved = {"session": session.to_dict(), "requests": [request.to_dict() for request in requests]}
        native: Any = plain_json(saved)
        return FrameworkTurn(native, tuple(map(read_call, requests)), response.text, usage=meter.read())


def name_call(request: Content) -> str:
    """Return the framework's own id of a call; those of models may repeat."""
    return str(request.function_call.id or request.function_call.call_id)


def read_call(request: Content) -> RequestedCall:
    """Return the call of an approval request."""
    call = request.function_call
    args = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {})
    return RequestedCall(call_id=name_call(request), name=str(call.name), args_json=args or "{}", subagent="")


def write_arguments(session: Any, entries: Mapping[str | None, BatchCall]) -> None:
    """Replace the arguments of edited calls in a saved session: the framework runs the call that it has saved."""
    for request in session["state"].get("tool_approval", {}).get("pending_approval_requests", ()):
        entry = entries.get(request["id"])
        if entry is not None and protocol.describe_edit(entry) is not None:
            request["function_call"]["arguments"] = entry.call.args


def find_call(context: FunctionInvocationContext) -> tuple[CallExecutor | None, BatchCall | None]:
    """Return the executor of the run, and its waiting call that the framework is about to run."""
    executor, about = current_executor(), context.metadata
    call_id = str(about.get("function_call_occurrence_id") or about.get("call_id") or "")
    return executor, executor.find(call_id, context.function.name) if executor is not None else None


def describe(entry: BatchCall, result: Any) -> list[Content]:
    """Return a result for the model, or why the call does not run."""
    return [Content.from_text(protocol.describe_refusal(entry) or protocol.describe_text(entry, result))]


def gate_tool(tool: FunctionTool) -> FunctionTool:
    """Return a tool that asks for approval, and runs the given one through the gate with the approved arguments."""

    async def invoke(sayso_context: FunctionInvocationContext, **_args: Any) -> list[Content] | Any:
        executor, entry = find_call(sayso_context)
        if executor is None or entry is None:
            raise MiddlewareFailure(NOT_REVIEWED.format(name=tool.name))
        native: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            returned = await run_tool(tool, args, sayso_context)
            native.append(parse(tool, returned))
            return dump(returned)

        try:
            result = await executor.run(entry, execute)
        except Exception as error:  # the framework would give any other to the model, and go on
            raise MiddlewareFailure(str(error)) from error
        if native and result.success and protocol.describe_edit(entry) is None:
            return native[0]  # an image must stay an image for the model
        return describe(entry, result)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        kind=tool.kind,
        additional_properties=tool.additional_properties,
        approval_mode="always_require",
        input_model=tool.parameters(),
        result_parser=SKIP_PARSING,
        func=note_gated(invoke),
    )


async def run_tool(tool: FunctionTool, args: JsonObject, outer: FunctionInvocationContext) -> Any:
    """Run a tool with these arguments and return what it returns."""
    inner = FunctionInvocationContext(
        function=tool,
        arguments=args,
        session=outer.session,
        kwargs=outer.kwargs,
        parent_service_session_state_keys=outer.parent_service_session_state_keys,
    )
    try:
        return await tool.invoke(arguments=args, context=inner, skip_parsing=True)
    except UserInputRequiredException as error:
        raise ToolFailed(_ASKS.format(name=tool.name)) from error


def dump(returned: Any) -> Any:
    """Return the result of a tool with the framework's contents as dictionaries."""
    if isinstance(returned, list):
        return [dump(part) for part in returned]
    return returned.to_dict() if isinstance(returned, Content) else returned


def parse(tool: FunctionTool, returned: Any) -> Any:
    """Return what the framework would give the model."""
    if tool.result_parser is SKIP_PARSING:
        return returned
    return tool.result_parser(returned) if callable(tool.result_parser) else FunctionTool.parse_result(returned)


def make_unknown(name: str) -> FunctionTool:
    """Return a stand-in for a tool that the agent does not have, whose call waits with others for its error."""
    return gate_tool(
        FunctionTool(name=name, description=_NO_SUCH_TOOL, input_model={"type": "object"}, func=_run_nothing)
    )


async def _run_nothing(*_args: Any, **_kwargs: Any) -> Any:
    raise IllegalTransition(_NO_SUCH_TOOL)


def _check_tool(tool: Any) -> FunctionTool:
    """Return a tool that can be gated. Raises `InvalidInput` for another."""
    name = getattr(tool, "name", None) or (tool.get("type") if isinstance(tool, Mapping) else type(tool).__name__)
    if not isinstance(tool, FunctionTool) or tool.declaration_only:
        raise InvalidInput(f"The tool {name!r} runs outside this process and cannot be gated. Remove it.")
    for target in reach(tool.func):
        if isinstance(target, BaseAgent) and (names := _list_names(target)):
            raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))
    return tool


def _list_names(agent: BaseAgent) -> list[str]:
    """Return the tools that an agent runs itself. An agent of another kind, such as a workflow, is listed itself."""
    if not isinstance(agent, RawAgent):
        return [agent.name or type(agent).__name__]
    tools = [*(agent.default_options.get("tools") or ()), *agent.mcp_tools]
    return [getattr(tool, "name", None) or type(tool).__name__ for tool in tools]
