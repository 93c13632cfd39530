"""Adapter for parsimony-agents: tool calls and questions are sent to reviewers.

    from sayso.adapters.parsimony import gate
    bot = gate(make_agent, name="bot")

At a turn with tool calls each call suspends the run, so none starts. Approved calls then run within the rehydrated
record, and `Agent.resume` continues from there. The reply answers a question (`ask_user`, or one from a recovery
policy).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from parsimony_agents import Agent
from parsimony_agents.agent.failure import SuspensionRequest, TerminationRequest, verify_suspension_token
from parsimony_agents.agent.state import SuspensionRecord
from parsimony_agents.tools import Tools
from pydantic import JsonValue

from sayso.adapters.base import Adapter, define_tool
from sayso.adapters.parsimony.turns import (
    ASK_USER,
    RETURN_DONE,
    RETURN_UNABLE,
    Segment,
    Turn,
    find_turn,
    read_calls,
    read_record,
    read_text,
    write_record,
)
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.decisions import KEYWORD
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolDefinition
from sayso.guarding.frameworks import guard_framework
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, ToolFailed, build_agent, describe_edit
from sayso.runner.tools import plain_json

_QUESTION = ToolDefinition(
    name=ASK_USER,
    description="Ask a person. The answer is the next message.",
    parameters={
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "context": {"type": ["string", "null"]},
            "choices": {"type": ["array", "null"], "items": {"type": "string"}},
            "answer": {"type": "string"},
        },
        "required": ["question"],
        KEYWORD: {"question": "question", "context": "context", "choices": "choices", "answer": "answer"},
    },
    idempotent=True,
)
_DECIDED = "The pending calls were decided. Their results are above."
_OTHER_SESSION = "The run was suspended with another suspension_secret. Use the secret that it started with."


def gate(build: Callable[[], Agent], *, name: str, idempotent: Collection[str] = (), **options: Any) -> FrameworkAgent:
    """Return the agent with its tools and questions gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    `build` creates the agent for every segment of a run. Calls of tools in `idempotent`, or marked so in the framework,
    may run again after a crash. The other options are those of `sayso.runner.agents.Agent`.
    """
    guard_framework("parsimony_agents")
    tools = [tool for tool in build().system_tools.tools if tool.name not in (ASK_USER, RETURN_DONE, RETURN_UNABLE)]
    allowed = {*idempotent, *(tool.name for tool in tools if tool.idempotent)}
    definitions = {
        tool.name: define_tool(tool.name, tool.description, tool.schema["function"]["parameters"], allowed)
        for tool in tools
    }
    return build_agent(Parsimony(build), name, {**definitions, ASK_USER: _QUESTION}, **options)


@dataclass(frozen=True)
class Parsimony(Adapter):
    """A parsimony-agents agent behind `sayso.runner.protocol.Framework`."""

    framework = "parsimony"
    package = "parsimony-agents"
    state_schema = "parsimony.suspension/1"

    build: Callable[[], Agent]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        segment = Segment()
        reached = await _follow(self._make(segment).run(text), segment)
        return _complete(reached, segment)

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return an error if the run was suspended with another secret, which the framework would refuse."""
        agent, record = self.build(), read_record(native["record"])
        _adopt(agent, record)
        return None if verify_suspension_token(record=record, secret=agent.suspension_secret) else _OTHER_SESSION

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Run the approved calls within the rehydrated record and resume it with the reply."""
        segment = Segment(executor)
        agent, record = self._make(segment), read_record(native["record"])
        _adopt(agent, record)
        turn = Turn(agent, record, segment, executor) if native["turn"] else None
        reply = await _reply(executor)
        resumed = agent.resume(
            record, reply, max_suspension_age_s=None, configure_ctx=turn.play if turn is not None else None
        )
        try:
            reached = await _follow(resumed, segment)
        except SuspensionRequest as request:
            assert turn is not None  # noqa: S101  only a tool of a turn raises it
            reached = _read_question(turn.suspend(request), request.choices)
        except TerminationRequest as request:
            reached = _hand_off(_describe_end("handoff", request, "rationale", "blockers"))
        return _complete(reached, segment)

    def _make(self, segment: Segment) -> Agent:
        agent = self.build()
        segment.model = agent.model_config.get("model")
        agent.system_tools = agent.tools = Tools([segment.guard(tool) for tool in agent.system_tools.tools])
        return agent


def _complete(reached: FrameworkTurn | Done, segment: Segment) -> FrameworkTurn | Done:
    events = tuple(segment.events)
    if isinstance(reached, Done):
        return replace(reached, external_events=events)
    return replace(reached, external_events=events, usage=segment.usage.read())


async def _reply(executor: CallExecutor) -> str:
    """Return the next message: the answers to questions, or a note that calls were decided."""
    questions = [entry for entry in executor.calls if entry.call.name == ASK_USER]
    answers = [await _answer(executor, entry) for entry in questions]
    if len(executor.calls) == 1 and answers:
        return answers[0]
    answered = [
        f"{entry.call.args.get('question', '')} {answer}" for entry, answer in zip(questions, answers, strict=True)
    ]
    edited = [
        f"{entry.call.name}: {note}"
        for entry in executor.calls
        if entry.call.name != ASK_USER
        and (entry.result is None or entry.result.success)
        and (note := describe_edit(entry))
    ]
    return "\n".join([_DECIDED, *edited, *answered])


async def _answer(executor: CallExecutor, entry: BatchCall) -> str:
    async def read(args: JsonObject) -> JsonValue:
        if "answer" not in args:  # a rule required approval of the question itself
            raise ToolFailed("The question was approved but not answered.")
        return args["answer"]

    result = await executor.run(entry, read)
    return str(result.output) if result.success else result.error or "Nobody answered."


async def _follow(events: AsyncIterator[Any], segment: Segment) -> FrameworkTurn | Done:
    last: dict[str, Any] = {}
    async for event in events:
        last[event.type] = event
        segment.note(event)
    if (question := last.get("user_input_requested")) is None:
        return _end(last, segment.summary)
    record = question.suspension_record
    if not segment.stopped:
        return _read_question(record, question.choices)
    message = record.messages[find_turn(record.messages)]
    calls = tuple(call for call in read_calls(message) if call.name not in (RETURN_DONE, RETURN_UNABLE))
    native: JsonObject = {"record": write_record(record), "turn": True}
    return FrameworkTurn(native, calls, text=str(read_text(message.content or "")))


def _read_question(record: SuspensionRecord, choices: list[str] | None) -> FrameworkTurn:
    args = {"question": record.pending_question, "context": record.pending_question_context, "choices": choices}
    call_id = f"question-{record.suspension_token.partition('.')[0]}"
    given = {name: value for name, value in args.items() if value is not None}
    call = RequestedCall(call_id=call_id, name=ASK_USER, args_json=json.dumps(given), subagent="")
    return FrameworkTurn({"record": write_record(record), "turn": False}, (call,))


def _end(last: Mapping[str, Any], summary: str | None) -> Done:
    if (cancelled := last.get("run_cancelled")) is not None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the worker stops, not the run
            raise asyncio.CancelledError
        return Done(_describe_end("cancelled", cancelled, "reason"), RunStatus.CANCELLED, cancelled.message)
    if (handoff := last.get("handoff")) is not None:
        return _hand_off(_describe_end("handoff", handoff, "rationale", "blockers", "suggested_next_steps"))
    if (partial := last.get("partial_run_summary")) is not None:
        result = _describe_end("partial", partial, "missing", "learned_facts", "next_step_plan")
        return Done(result, RunStatus.DEGRADED, "The agent ended early with a partial result.")
    if summary is not None:
        return Done({"text": summary})
    error = last.get("error")
    reason = error.message if error is not None else "The agent stopped without a result."
    return Done({"outcome": "error"}, RunStatus.FAILED, reason)


def _hand_off(handoff: JsonObject) -> Done:
    error = f"The agent handed the task back: {handoff['rationale']}"
    return Done({"outcome": "handoff", **handoff}, RunStatus.DEGRADED, error)


def _describe_end(outcome: str, event: Any, *names: str) -> JsonObject:
    return {"outcome": outcome, **{name: plain_json(getattr(event, name)) for name in names}}


def _adopt(agent: Agent, record: SuspensionRecord) -> None:
    """Give the agent the session of the record. Each agent has its own by default, and so another secret."""
    if agent.suspension_secret == agent.session_id:
        agent.suspension_secret = record.session_id
    agent.session_id = record.session_id
