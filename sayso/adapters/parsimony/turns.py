"""Runs the approved calls of one parsimony-agents turn through the framework's own dispatch; saves runs as JSON."""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from opentelemetry import trace
from parsimony_agents import Agent
from parsimony_agents.agent.failure import SuspensionRequest, TerminationRequest
from parsimony_agents.agent.failure.suspension import compute_suspension_token
from parsimony_agents.agent.helpers import TurnState
from parsimony_agents.agent.models import AgentMessage
from parsimony_agents.agent.state import RunState, SuspensionRecord
from parsimony_agents.agent.workspace_hooks import WorkspaceRunHooks
from parsimony_agents.tools import Tool, ToolResult
from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from sayso.adapters.base import TOOL_ERROR, UsageMeter
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import same_json
from sayso.core.records.run_state import check_state
from sayso.errors import InvalidInput, InvalidJson
from sayso.guarding.runs import note_gated
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import ToolFailed, describe_text
from sayso.runner.tools import describe_error, plain_json

_REWRITTEN = ("context_snapshot", "connectors_catalog", "connector_skills")
_INVALID_RECORD = "The saved state is not a suspension of parsimony-agents: {reason}. Cancel this run."
_NOT_RUN = "Not run: the run was suspended."


def write_record(record: SuspensionRecord) -> JsonObject:
    """Return the record as JSON. Raises `InvalidJson`, which names the key, for a message that is not JSON."""
    kept = [message for message in record.messages if not any(message.metadata.get(key) for key in _REWRITTEN)]
    messages = [_write_message(message, place) for place, message in enumerate(close_turn(kept))]
    return {**record.model_copy(update={"messages": []}).model_dump(mode="json"), "messages": messages}


def read_record(written: Any) -> SuspensionRecord:
    """Return a record that the framework can resume. Raises `InvalidInput` if it is malformed."""
    try:
        record = SuspensionRecord.model_validate({**written, "messages": []})
        messages = [AgentMessage.model_validate(message) for message in written["messages"]]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(
            _INVALID_RECORD.format(reason=f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        ) from error
    except (KeyError, TypeError) as error:
        raise InvalidInput(_INVALID_RECORD.format(reason=describe_error(error))) from error
    return record.model_copy(update={"messages": messages})


def find_turn(messages: Sequence[Any]) -> int:
    """Return the index of the model's last response, or -1."""
    return max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)


def read_calls(message: Any) -> tuple[RequestedCall, ...]:
    """Return the calls of a response in order."""
    return tuple(
        RequestedCall(call_id=call.id, name=call.function.name, args_json=call.function.arguments, subagent="")
        for call in message.tool_calls or ()
    )


def close_turn(messages: Sequence[Any], results: Mapping[int, Any] | None = None) -> list[Any]:
    """Return the messages with a result for each call of the last turn, as providers require, from `results`."""
    place = find_turn(messages)
    if place < 0:
        return list(messages)
    tail = list(messages[place + 1 :])
    closed: list[Any] = []
    for index, call in enumerate(read_calls(messages[place])):
        answers = (message for message in tail if message.role == "tool" and message.tool_call_id == call.call_id)
        if (written := next(answers, None)) is not None:
            tail.remove(written)
        result = (results or {}).get(index)
        if isinstance(result, AgentMessage):
            written = result
        elif written is None or result is not None:
            text = _NOT_RUN if result is None else result
            written = AgentMessage(role="tool", content=text, name=call.name, tool_call_id=call.call_id)
        closed.append(written)
    return [*messages[: place + 1], *closed, *tail]


def _write_message(message: Any, place: int) -> JsonObject:
    try:
        written: JsonObject = message.model_dump(mode="json")
        check_state({"record": {"messages": [*[None] * place, written]}})
    except PydanticSerializationError as error:
        check_state({"record": {"messages": [*[None] * place, message.model_dump()]}})
        raise InvalidJson(
            f"The run's state cannot be saved: $.record.messages[{place}] is not JSON: {error}"
        ) from error
    return written


def read_text(content: Any) -> Any:
    """Return content as the model sees it: as text, if it is text."""
    if hasattr(content, "to_llm"):
        content = content.to_llm()
    if isinstance(content, list) and all(isinstance(block, dict) and block.get("type") == "text" for block in content):
        return "".join(str(block.get("text", "")) for block in content)
    return content if isinstance(content, str) else plain_json(content)


ASK_USER, RETURN_DONE, RETURN_UNABLE = "ask_user", "return_done", "return_unable"
_SHOWN_EVENTS = (
    "llm_call_completed",
    "tool_result_observed",
    "user_input_requested",
    "error",
    "handoff",
    "partial_run_summary",
    "run_cancelled",
)
"""The events on the timeline. The others are fragments of these, or the whole state."""

_REFUSED_TEXT = "Not run: it cannot be combined with other calls. Repeat it alone."
_TIMED_OUT = "{name} exceeded the agent's tool_timeout_s. Its effect is unknown. Check it before you retry."


@dataclass
class Segment:
    """One segment of a run, between two suspensions: the calls that may start, and their results."""

    executor: CallExecutor | None = None
    ready: list[BatchCall] = field(default_factory=list)
    started: set[int] = field(default_factory=set)
    results: dict[int, Any] = field(default_factory=dict)
    events: list[JsonObject] = field(default_factory=list)
    usage: UsageMeter = field(default_factory=UsageMeter)
    model: str | None = None
    stopped: bool = False
    summary: str | None = None

    def guard(self, tool: Tool) -> Tool:
        """Return the tool with the function that the framework calls instead of its own."""
        run: Any = {RETURN_DONE: self._note_end, ASK_USER: self._note_question}.get(tool.name, self._run)
        if tool.name == RETURN_UNABLE:
            return tool
        guarded = copy(tool)
        guarded.function = note_gated(lambda **given: run(tool, given))
        return guarded

    def note(self, event: Any) -> None:
        """Keep an event for the timeline, and the tokens of a model call. Sayso itself records that a call waits."""
        if event.type == "llm_call_completed":
            used = event.usage or {}
            self.usage.note(self.model, used.get("prompt_tokens"), used.get("completion_tokens"))
        if event.type in _SHOWN_EVENTS and not (self.stopped and event.type == "tool_result_observed"):
            self.events.append(event.model_dump(mode="json", exclude={"suspension_record"}, fallback=str))

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
        named = (entry for entry in self.ready if entry.call.name == tool.name)
        entry = next((entry for entry in named if same_json(_visible(entry.call.args), _visible(given))), None)
        if entry is not None:
            self.ready.remove(entry)
        if self.executor is None or entry is None:
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
                raise ToolFailed(native[0].exception_message or TOOL_ERROR)
            data = native[0].data
            return read_text(data.to_llm()) if hasattr(data, "to_llm") else plain_json(data)

        self.started.add(entry.call.index)
        result = self.results[entry.call.index] = await self.executor.run(entry, execute)
        if raised:
            raise raised[0]
        return native[0] if native else ToolResult(exception_message=result.error, data=None)


class Turn:
    """The turn that was suspended. It runs approved calls and writes all results to the transcript."""

    def __init__(self, agent: Agent, record: SuspensionRecord, segment: Segment, executor: CallExecutor) -> None:
        self._agent = agent
        self._record = record
        self._segment = segment
        self._executor = executor

    async def play(self, ctx: Any) -> None:
        place = find_turn(ctx.messages)
        turn = read_calls(ctx.messages[place])
        gated = [index for index, call in enumerate(turn) if call.name not in (RETURN_DONE, RETURN_UNABLE)]
        calls = dict(zip(gated, self._executor.calls, strict=True))
        ctx.messages = list(ctx.messages[: place + 1])
        ready = [
            (turn[index].call_id, entry)
            for index, entry in calls.items()
            if entry.may_run and entry.call.name != ASK_USER
        ]
        ending = await self._dispatch(ctx, ready)
        await self._executor.close()
        indexes = range(len(turn))
        texts = {index: self._describe_result(calls[index]) if index in calls else _REFUSED_TEXT for index in indexes}
        ctx.messages = close_turn(ctx.messages, {index: text for index, text in texts.items() if text is not None})
        if isinstance(ending, SuspensionRequest):
            self._record = self._record.model_copy(update={"messages": list(ctx.messages)})
        if ending is not None:
            raise ending

    def suspend(self, request: SuspensionRequest) -> SuspensionRecord:
        """Return the record of the run, suspended for a question that a running tool asked."""
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
        """Run the calls through the framework's dispatch. Return the request of a call that ends the run, if any."""
        record, self._segment.ready = self._record, [entry for _, entry in ready]
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
                self._segment.note(event)
        except (SuspensionRequest, TerminationRequest) as request:
            ending = request
        unfinished = self._segment.started - self._segment.results.keys()
        if names := [entry.call.name for _, entry in ready if entry.call.index in unfinished]:
            raise InvalidInput(_TIMED_OUT.format(name=names[0]))
        record.minted_refs, record.minted_live_names = list(turn.minted_refs), dict(turn.minted_live_names)
        return ending

    def _describe_result(self, entry: BatchCall) -> str | None:
        if entry.call.name == ASK_USER:
            return str(entry.call.args.get("question", ""))  # the reply holds the answer
        result = self._segment.results.get(entry.call.index)
        if result is not None:
            return None if result.success else result.error
        if entry.result is None:
            return None
        return describe_text(entry, entry.result) if entry.result.success else entry.result.error


def _write_turn(calls: list[tuple[str, BatchCall]]) -> Any:
    return SimpleNamespace(
        tool_calls=[
            SimpleNamespace(
                id=call_id, function=SimpleNamespace(name=entry.call.name, arguments=json.dumps(entry.call.args))
            )
            for call_id, entry in calls
        ]
    )


def _visible(args: Mapping[str, Any]) -> JsonObject:
    """Drop the arguments that the framework adds or removes."""
    return {name: value for name, value in args.items() if name not in ("context", "_ui_message")}
