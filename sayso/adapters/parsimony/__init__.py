"""Have every tool call and every question of a parsimony-agents agent put to people, wherever the run goes on.

    from sayso.adapters.parsimony import gate
    bot = gate(make_agent, name="bot")

At a turn that calls tools each of them suspends the run, so that none starts. What has leave is then run within the
rehydrated record, and `Agent.resume` goes on from there. A question (`ask_user`, or one that a recovery policy makes)
is answered by the reply.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from parsimony_agents import Agent
from parsimony_agents.agent.failure import SuspensionRequest, TerminationRequest, verify_suspension_token
from parsimony_agents.agent.state import SuspensionRecord
from parsimony_agents.tools import Tool, Tools
from pydantic import JsonValue

from sayso.adapters.parsimony.records import find_turn, read_calls, read_record, read_text, write_record
from sayso.adapters.parsimony.turns import ASK_USER, RETURN_DONE, RETURN_UNABLE, Stretch, Turn
from sayso.canonical_json import JsonObject
from sayso.policy.questions import KEYWORD
from sayso.records.suspensions import Origin, RunStatus
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, ToolFailed, build_agent, describe_edit
from sayso.runner.tools import plain_json

_QUESTION = ToolDefinition(
    name=ASK_USER,
    description="Ask a person; the answer goes on as the next message.",
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
_DECIDED = "The calls that waited were decided; what they came to stands above."
_FOREIGN = "The run was suspended under another suspension_secret; give the agent the one it was begun with."


def gate(build: Callable[[], Agent], *, name: str, idempotent: Collection[str] = (), **options: Any) -> FrameworkAgent:
    """Return the agent with its tools and questions behind Sayso, for `SAYSO_AGENTS` and for `start`.

    `build` makes the agent anew for every stretch of a run. Calls of the tools in `idempotent`, and of those that say
    so themselves, may be run again after a crash. The other options are those of `sayso.runner.agents.Agent`.
    """
    tools = [one for one in build().system_tools.tools if one.name not in (ASK_USER, RETURN_DONE, RETURN_UNABLE)]
    definitions = {one.name: _define(one, idempotent) for one in tools}
    return build_agent(Parsimony(build), name, {**definitions, ASK_USER: _QUESTION}, **options)


@dataclass(frozen=True)
class Parsimony:
    """A parsimony-agents agent behind `sayso.runner.protocol.Framework`."""

    build: Callable[[], Agent]

    @property
    def origin(self) -> Origin:
        """Which software this is, and how its state is written."""
        return Origin(
            framework="parsimony",
            framework_version=version("parsimony-agents"),
            adapter="sayso.adapters.parsimony",
            state_schema="parsimony.suspension/1",
        )

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run up to the first turn that calls tools or asks, or to the end."""
        stretch = Stretch()
        reached = await _follow(self._make(stretch).run(text), stretch)
        return replace(reached, external_events=tuple(stretch.told))

    async def find_fault(self, native: JsonObject) -> str | None:
        """Say that the run was suspended under another secret, which the framework would refuse."""
        agent, record = self.build(), read_record(native["record"])
        _adopt(agent, record)
        return None if verify_suspension_token(record=record, secret=agent.suspension_secret) else _FOREIGN

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Run what has leave within the rehydrated record, and resume it with what is to be told."""
        stretch = Stretch(executor)
        agent, record = self._make(stretch), read_record(native["record"])
        _adopt(agent, record)
        turn = Turn(agent, record, stretch, executor) if native["turn"] else None
        reply = await _reply(executor)
        resumed = agent.resume(
            record, reply, max_suspension_age_s=None, configure_ctx=turn.play if turn is not None else None
        )
        try:
            reached = await _follow(resumed, stretch)
        except SuspensionRequest as request:
            assert turn is not None  # noqa: S101  a tool of the turn has raised it
            reached = _ask(turn.suspend(request), request.choices)
        except TerminationRequest as request:
            reached = _hand_off(_describe_end("handoff", request, "rationale", "blockers"))
        return replace(reached, external_events=tuple(stretch.told))

    def _make(self, stretch: Stretch) -> Agent:
        agent = self.build()
        agent.system_tools = agent.tools = Tools([stretch.guard(one) for one in agent.system_tools.tools])
        return agent


async def _reply(executor: CallExecutor) -> str:
    """Return the message that goes on: the answers to what was asked, or that calls were decided."""
    questions = [one for one in executor.calls if one.call.name == ASK_USER]
    answers = [await _answer(executor, one) for one in questions]
    if len(executor.calls) == 1 and answers:
        return answers[0]
    told = [f"{one.call.args.get('question', '')} {answer}" for one, answer in zip(questions, answers, strict=True)]
    edited = [
        f"{one.call.name}: {note}"
        for one in executor.calls
        if one.call.name != ASK_USER and (one.result is None or one.result.success) and (note := describe_edit(one))
    ]
    return "\n".join([_DECIDED, *edited, *told])


async def _answer(executor: CallExecutor, one: BatchCall) -> str:
    async def read(args: JsonObject) -> JsonValue:
        if "answer" not in args:  # a rule wanted the question approved, and nobody wrote the answer in
            raise ToolFailed("The question was approved, but nobody answered it.")
        return args["answer"]

    result = await executor.run(one, read)
    return str(result.output) if result.success else result.error or "Nobody answered."


async def _follow(events: AsyncIterator[Any], stretch: Stretch) -> FrameworkTurn | Done:
    """Read the run's events to their end and return where it came to."""
    last: dict[str, Any] = {}
    async for event in events:
        last[event.type] = event
        stretch.note(event)
    if (asked := last.get("user_input_requested")) is None:
        return _end(last, stretch.summary)
    return _pause(asked.suspension_record) if stretch.stopped else _ask(asked.suspension_record, asked.choices)


def _pause(record: SuspensionRecord) -> FrameworkTurn:
    """Return the calls of the turn that suspended the run."""
    message = record.messages[find_turn(record.messages)]
    calls = tuple(one for one in read_calls(message) if one.name not in (RETURN_DONE, RETURN_UNABLE))
    return FrameworkTurn(
        {"record": write_record(record), "turn": True}, calls, text=str(read_text(message.content or ""))
    )


def _ask(record: SuspensionRecord, choices: list[str] | None) -> FrameworkTurn:
    """Return a question that no call asked as if one had."""
    args = {"question": record.pending_question, "context": record.pending_question_context, "choices": choices}
    call_id = f"question-{record.suspension_token.partition('.')[0]}"
    given = {name: value for name, value in args.items() if value is not None}
    call = RequestedCall(call_id=call_id, name=ASK_USER, args_json=json.dumps(given), subagent="")
    return FrameworkTurn({"record": write_record(record), "turn": False}, (call,))


def _end(last: Mapping[str, Any], summary: str | None) -> Done:
    """Return how the run ended by its own word."""
    if (cancelled := last.get("run_cancelled")) is not None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # it is the worker that stops, not the run
            raise asyncio.CancelledError
        return Done(_describe_end("cancelled", cancelled, "reason"), RunStatus.CANCELLED, cancelled.message)
    if (handoff := last.get("handoff")) is not None:
        return _hand_off(_describe_end("handoff", handoff, "rationale", "blockers", "suggested_next_steps"))
    if (partial := last.get("partial_run_summary")) is not None:
        result = _describe_end("partial", partial, "missing", "learned_facts", "next_step_plan")
        return Done(result, RunStatus.DEGRADED, "The agent ended early with what it had.")
    if summary is not None:
        return Done({"text": summary})
    error = last.get("error")
    why = error.message if error is not None else "The agent stopped without saying what it came to."
    return Done({"outcome": "error"}, RunStatus.FAILED, why)


def _hand_off(told: JsonObject) -> Done:
    error = f"The agent handed the task back: {told['rationale']}"
    return Done({"outcome": "handoff", **told}, RunStatus.DEGRADED, error)


def _describe_end(outcome: str, event: Any, *names: str) -> JsonObject:
    return {"outcome": outcome, **{name: plain_json(getattr(event, name)) for name in names}}


def _adopt(agent: Agent, record: SuspensionRecord) -> None:
    """Make the agent the one of the record's session: by default each has another, and so another secret."""
    if agent.suspension_secret == agent.session_id:
        agent.suspension_secret = record.session_id
    agent.session_id = record.session_id


def _define(tool: Tool, idempotent: Collection[str]) -> ToolDefinition:
    function = tool.schema["function"]
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters=function["parameters"],
        idempotent=tool.idempotent or tool.name in idempotent,
    )
