"""Run the calls of one turn of a parsimony-agents agent with leave alone, through the framework's own dispatch."""

import json
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from opentelemetry import trace
from parsimony_agents import Agent
from parsimony_agents.agent.failure import SuspensionRequest, TerminationRequest
from parsimony_agents.agent.failure.suspension import compute_suspension_token
from parsimony_agents.agent.helpers import TurnState
from parsimony_agents.agent.state import RunState, SuspensionRecord
from parsimony_agents.agent.workspace_hooks import WorkspaceRunHooks
from parsimony_agents.tools import Tool, ToolResult
from pydantic import JsonValue

from sayso.adapters.parsimony.records import close_turn, find_turn, read_calls, read_text
from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.policy.rules import same_json
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.protocol import ToolFailed, describe_text
from sayso.runner.tools import plain_json

ASK_USER, RETURN_DONE, RETURN_UNABLE = "ask_user", "return_done", "return_unable"
_TOLD = (
    "llm_call_completed",
    "tool_result_observed",
    "user_input_requested",
    "error",
    "handoff",
    "partial_run_summary",
    "run_cancelled",
)
"""What the timeline shows of a run's events: the others are fragments of these, or the whole state."""

_NOT_YET = "Not done: it came together with other calls. Ask for it again by itself."
_TIMED_OUT = "{name} took longer than the agent's tool_timeout_s and was cut off; nobody knows what it did."


@dataclass
class Stretch:
    """What happens between two stops: which calls may start, and what came of them."""

    executor: CallExecutor | None = None
    ready: list[BatchCall] = field(default_factory=list)
    begun: set[int] = field(default_factory=set)
    results: dict[int, Any] = field(default_factory=dict)
    told: list[JsonObject] = field(default_factory=list)
    stopped: bool = False
    summary: str | None = None

    def guard(self, tool: Tool) -> Tool:
        """Return the tool so that it starts with leave alone, and suspends the run without."""
        guarded = copy(tool)
        if tool.name == RETURN_DONE:
            guarded.function = lambda **given: self._note_end(tool, given)
        elif tool.name == ASK_USER:
            guarded.function = lambda **given: self._note_question(tool, given)
        elif tool.name != RETURN_UNABLE:
            guarded.function = lambda **given: self._run(tool, given)
        return guarded

    def note(self, event: Any) -> None:
        """Keep an event for the timeline; that a call waits is told by Sayso itself."""
        if event.type in _TOLD and not (self.stopped and event.type == "tool_result_observed"):
            self.told.append(event.model_dump(mode="json", exclude={"suspension_record"}, fallback=str))

    async def _note_end(self, tool: Tool, given: Mapping[str, Any]) -> Any:
        returned = await tool.function(**given)
        self.summary = str(given.get("summary", "")).strip()
        return returned

    async def _note_question(self, tool: Tool, given: Mapping[str, Any]) -> Any:
        try:
            return await tool.function(**given)
        except SuspensionRequest:
            self.stopped = True
            raise

    async def _run(self, tool: Tool, given: Mapping[str, Any]) -> Any:
        one = self._take(tool.name, given)
        if self.executor is None or one is None:
            self.stopped = True
            raise SuspensionRequest(f"{tool.name} waits for a decision.")
        native: list[ToolResult] = []
        raised: list[Exception] = []

        async def execute(_args: JsonObject) -> JsonValue:
            try:
                returned = await tool.function(**given)
            except (SuspensionRequest, TerminationRequest) as request:
                raised.append(request)
                return str(request)
            native.append(returned if isinstance(returned, ToolResult) else ToolResult.from_data(returned))
            if not native[0].ok:
                raise ToolFailed(native[0].exception_message or "The tool failed.")
            return _read_output(native[0].data)

        self.begun.add(one.call.index)
        result = self.results[one.call.index] = await self.executor.run(one, execute)
        if raised:
            raise raised[0]
        return native[0] if native else ToolResult(exception_message=result.error, data=None)

    def _take(self, name: str, given: Mapping[str, Any]) -> BatchCall | None:
        """Return the call that is being started; of equal ones the first."""
        for one in self.ready:
            if one.call.name == name and same_json(_visible(one.call.args), _visible(given)):
                self.ready.remove(one)
                return one
        return None


class Turn:
    """The turn in which the run was suspended: its calls are run, and its transcript is told of all of them."""

    def __init__(self, agent: Agent, record: SuspensionRecord, stretch: Stretch, executor: CallExecutor) -> None:
        self._agent = agent
        self._record = record
        self._stretch = stretch
        self._executor = executor

    async def play(self, ctx: Any) -> None:
        """Run what has leave, as the framework does, in the context it has rebuilt."""
        place = find_turn(ctx.messages)
        turn = read_calls(ctx.messages[place])
        asked = [at for at, one in enumerate(turn) if one.name not in (RETURN_DONE, RETURN_UNABLE)]
        calls = dict(zip(asked, self._executor.calls, strict=True))
        ctx.messages = list(ctx.messages[: place + 1])
        ready = [(turn[at].call_id, one) for at, one in calls.items() if one.may_run and one.call.name != ASK_USER]
        ending = await self._dispatch(ctx, ready)
        await self._executor.close()
        told = {at: self._tell(calls[at]) if at in calls else _NOT_YET for at in range(len(turn))}
        ctx.messages = close_turn(ctx.messages, {at: one for at, one in told.items() if one is not None})
        if isinstance(ending, SuspensionRequest):
            self._record = self._record.model_copy(update={"messages": list(ctx.messages)})
        if ending is not None:
            raise ending

    def suspend(self, request: SuspensionRequest) -> SuspensionRecord:
        """Return the record of the run as it stands now, suspended for a question that a tool asked while it ran."""
        record = self._record
        token = compute_suspension_token(
            run_id=record.run_id, session_id=record.session_id, secret=self._agent.suspension_secret
        )
        update = {
            "suspension_token": token,
            "pending_question": request.question,
            "pending_question_context": request.context,
            "originating_failure_kind": request.originating_failure_kind,
        }
        return record.model_copy(update=update)

    async def _dispatch(self, ctx: Any, ready: list[tuple[str, BatchCall]]) -> Any:
        """Run the calls through the framework's own dispatch; return how one of them would end the run, if so."""
        record, self._stretch.ready = self._record, [one for _, one in ready]
        turn = TurnState(minted_refs=list(record.minted_refs), minted_live_names=dict(record.minted_live_names))
        hooks = WorkspaceRunHooks(
            agent=self._agent,
            ctx=ctx,
            turn_state=turn,
            cancellation=None,
            tool_choice="auto",
            start_time=record.started_at.timestamp(),
            agent_span=trace.get_current_span(),
        )
        state = RunState(run_id=record.run_id, session_id=record.session_id, messages=list(ctx.messages))
        ending = None
        try:
            async for event in hooks.dispatch_tools(state, _write_turn(ready), cancellation=None):
                self._stretch.note(event)
        except (SuspensionRequest, TerminationRequest) as request:
            ending = request
        lost = self._stretch.begun - self._stretch.results.keys()
        if names := [one.call.name for _, one in ready if one.call.index in lost]:
            raise InvalidInput(_TIMED_OUT.format(name=names[0]))
        record.minted_refs, record.minted_live_names = list(turn.minted_refs), dict(turn.minted_live_names)
        return ending

    def _tell(self, one: BatchCall) -> str | None:
        """Return what the transcript says of a call, or None where the framework has written it."""
        if one.call.name == ASK_USER:
            return str(one.call.args.get("question", ""))  # its answer is the reply
        result = self._stretch.results.get(one.call.index)
        if result is not None:
            return None if result.success else result.error
        if one.result is None:
            return None
        return describe_text(one, one.result) if one.result.success else one.result.error


def _write_turn(calls: list[tuple[str, BatchCall]]) -> Any:
    """Return an answer of the model that asks for these calls, by its own ids, with the arguments that were decided."""
    asked = [(call_id, one.call.name, json.dumps(one.call.args)) for call_id, one in calls]
    return SimpleNamespace(
        tool_calls=[
            SimpleNamespace(id=call_id, function=SimpleNamespace(name=name, arguments=arguments))
            for call_id, name, arguments in asked
        ]
    )


def _read_output(data: Any) -> JsonValue:
    """Return what a tool gave as the model is told of it: text, unless it is anything else."""
    return read_text(data.to_llm()) if hasattr(data, "to_llm") else plain_json(data)


def _visible(args: Mapping[str, Any]) -> JsonObject:
    """Leave out what the framework adds to a call and what it takes away."""
    return {name: value for name, value in args.items() if name not in ("context", "_ui_message")}
