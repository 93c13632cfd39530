"""Saved state of a run of our own agent, and plain functions that return the next state."""

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import AliasChoices, Field

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.events import PolicyEvent, make_event
from sayso.core.records.base import Immutable
from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import ModelUsage, OperatorNote, Progress, RunRef
from sayso.core.records.tools import ToolResult
from sayso.runner.agents import Budgets
from sayso.runner.batches import Batch, describe_model
from sayso.runner.judging import write_turn
from sayso.runner.models import ChatMessage, ModelTurn

_COMPLETE = (None, "stop", "tool_calls", "function_call")
"""Finish reasons of a turn that the model ended itself."""


class RunState(Immutable):
    """State of a run; `sayso.run/1`. `batch` holds the calls of a turn until the model gets their results."""

    format: Literal["sayso.run/1"] = "sayso.run/1"
    run_id: str
    agent: str
    thread_id: str
    claimed: JsonObject = Field(default_factory=dict, validation_alias=AliasChoices("claimed", "context"))
    messages: tuple[ChatMessage, ...]
    step: int = 0
    tool_calls: int = 0
    spent_ms: float = 0
    batch: Batch | None = None
    executions: tuple[ToolResult, ...] = ()
    progress: Progress | None = None


class Exceeded(NamedTuple):
    """A budget that is used up."""

    budget: str
    limit: float


def start_state(
    run_id: str, agent: str, input_text: str, claimed: JsonObject | None = None, thread_id: str | None = None
) -> RunState:
    """Return the state of a new run of the named agent."""
    return RunState(
        run_id=run_id,
        agent=agent,
        thread_id=thread_id or run_id,
        claimed=claimed or {},
        messages=({"role": "user", "content": input_text},),
        progress=Progress(usage=()),
    )


def add_turn(state: RunState, turn: ModelTurn, model: str = "") -> RunState:
    """Return the state with one more turn of the named model."""
    progress = state.progress
    return state.model_copy(
        update={
            "progress": progress.with_usage(read_usage(turn, model)) if progress is not None else None,
            "messages": (*state.messages, write_turn(turn)),
            "step": state.step + 1,
            "tool_calls": state.tool_calls + len(turn.calls),
        }
    )


def add_results(state: RunState, results: Sequence[ToolResult], started: Sequence[str] = ()) -> RunState:
    """Return the state with the results of its batch as messages; `started` are the names of the tools that ran."""
    progress = state.progress
    return state.model_copy(
        update={
            "progress": progress.with_tools(started) if progress is not None else None,
            "messages": (*state.messages, *describe_model(results)),
            "executions": (*state.executions, *results),
            "batch": None,
        }
    )


def add_note(state: RunState, note: OperatorNote) -> RunState:
    """Return the state with a person's note as a message; a JSON string ends where its text does."""
    text = json.dumps(note.text, ensure_ascii=False)
    content = f"A note of {note.by.id}, a person who watches this run. It decides about no call. Note: {text}"
    return state.model_copy(update={"messages": (*state.messages, {"role": "user", "content": content})})


def read_usage(turn: ModelTurn, model: str) -> ModelUsage | None:
    """Return the tokens of a turn; None if its model does not report them."""
    given, made = turn.usage.get("prompt_tokens"), turn.usage.get("completion_tokens")
    if given is None or made is None:
        return None
    return ModelUsage(model=model, input_tokens=given, output_tokens=made, model_calls=1)


def describe_run(state: RunState, run: RunRef | None = None) -> PolicyEvent:
    """Return the facts about the run that rules read. Its agent has no sub-agents. A run without a record has none."""
    if run is not None:
        return make_event(run, state.step, state.progress, subagent_name="")
    return PolicyEvent(
        progress=state.progress,
        run_id=state.run_id,
        thread_id=state.thread_id,
        step=state.step,
        agent=state.agent,
        subagent_name="",
        claimed=state.claimed,
    )


def report_turn(turn: ModelTurn) -> tuple[Event, ...]:
    """Return the events of a model's turn, with a warning if it was cut off."""
    data = {"text": turn.text, "tool_call_count": len(turn.calls)}
    data |= {"finish_reason": turn.finish_reason, "usage": turn.usage}
    completed = Event(type=EventType.LLM_COMPLETED, data=data)
    if turn.finish_reason in _COMPLETE:
        return (completed,)
    message = f"The model did not end its answer itself: {turn.finish_reason}. It may be incomplete."
    return completed, Event(type=EventType.WARNING, data={"message": message})


def find_exceeded(budgets: Budgets, state: RunState, elapsed_ms: float) -> Exceeded | None:
    """Return the budget that allows no further turn, if any."""
    if state.step >= budgets.max_steps:
        return Exceeded("max_steps", budgets.max_steps)
    if elapsed_ms >= budgets.max_wall_time_s * 1000:
        return Exceeded("max_wall_time_s", budgets.max_wall_time_s)
    written = sum(len(str(message["content"] or "").encode("utf-8", "replace")) for message in state.messages)
    if written > budgets.max_transcript_bytes:
        return Exceeded("max_transcript_bytes", budgets.max_transcript_bytes)
    return None


def summarise(state: RunState, reason: str, not_started: Sequence[str] = ()) -> JsonObject:
    """Return the partial result of a run that ends early: its last text, completed calls and missing ones."""
    done = [result.tool_name for result in state.executions if result.success]
    failed = [result.tool_name for result in state.executions if not result.success]
    texts = (message["content"] for message in reversed(state.messages) if message["role"] == "assistant")
    return {
        "reason": reason,
        "text": next((text for text in texts if text), ""),
        "steps": state.step,
        "tool_calls": len(state.executions),
        "completed": [*done],
        "missing": [*failed, *not_started],
    }
