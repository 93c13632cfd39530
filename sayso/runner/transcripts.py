"""Hold where a run stands, as plain JSON, and say what each step adds to it and when its budget is used up.

Plain functions on a frozen state: `sayso/runner/loop.py` drives, these say what became of it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import AliasChoices, Field, JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.engine import PolicyEvent
from sayso.records.base import Immutable
from sayso.records.events import Event, EventType
from sayso.records.tool_calls import ToolResult
from sayso.runner.agents import Budgets
from sayso.runner.batches import Batch, describe_model
from sayso.runner.judging import write_turn
from sayso.runner.models import ChatMessage, ModelTurn

_BY_ITSELF = (None, "stop", "tool_calls", "function_call")
"""How a turn ends that the model ended itself."""


class RunState(Immutable):
    """Where a run stands; `sayso.run/1`. The batch is there from being judged until the model is told its results."""

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


class Exceeded(NamedTuple):
    """A budget that is used up."""

    budget: str
    limit: float


def start_state(
    run_id: str, agent: str, input_text: str, claimed: JsonObject | None = None, thread_id: str | None = None
) -> RunState:
    """Return the state of a run that has not begun: the name of its agent, and what it is asked to do."""
    return RunState(
        run_id=run_id,
        agent=agent,
        thread_id=thread_id or run_id,
        claimed=claimed or {},
        messages=({"role": "user", "content": input_text},),
    )


def add_turn(state: RunState, turn: ModelTurn) -> RunState:
    """Return the state after the model has answered."""
    return state.model_copy(
        update={
            "messages": (*state.messages, write_turn(turn)),
            "step": state.step + 1,
            "tool_calls": state.tool_calls + len(turn.calls),
        }
    )


def add_results(state: RunState, results: Sequence[ToolResult]) -> RunState:
    """Return the state after the model has been told how its calls ended."""
    return state.model_copy(
        update={
            "messages": (*state.messages, *describe_model(results)),
            "executions": (*state.executions, *results),
            "batch": None,
        }
    )


def describe_run(state: RunState) -> PolicyEvent:
    """Return what the rules know of the run, whichever call they are to judge. Its agent has no sub-agents."""
    return PolicyEvent(
        run_id=state.run_id,
        thread_id=state.thread_id,
        step=state.step,
        agent=state.agent,
        subagent_name="",
        claimed=state.claimed,
    )


def report_turn(turn: ModelTurn) -> tuple[Event, ...]:
    """Return the events that tell what the model answered, with a warning where it was cut off."""
    data = {
        "text": turn.text,
        "tool_call_count": len(turn.calls),
        "finish_reason": turn.finish_reason,
        "usage": turn.usage,
    }
    completed = Event(type=EventType.LLM_COMPLETED, data=data)
    if turn.finish_reason in _BY_ITSELF:
        return (completed,)
    message = f"The model did not end its answer itself: {turn.finish_reason}. It may be incomplete."
    return completed, Event(type=EventType.WARNING, data={"message": message})


def find_exceeded(budgets: Budgets, state: RunState, spent_ms: float) -> Exceeded | None:
    """Return the budget that leaves no room for another turn, or None while there is room."""
    if state.step >= budgets.max_steps:
        return Exceeded("max_steps", budgets.max_steps)
    if spent_ms >= budgets.max_wall_time_s * 1000:
        return Exceeded("max_wall_time_s", budgets.max_wall_time_s)
    if _count_bytes(state.messages) > budgets.max_transcript_bytes:
        return Exceeded("max_transcript_bytes", budgets.max_transcript_bytes)
    return None


def summarise(state: RunState, reason: str, not_started: Sequence[str] = ()) -> JsonObject:
    """Return what a run that ends early has come to: its last words, what was done, and what was not."""
    done = [result.tool_name for result in state.executions if result.success]
    failed = [result.tool_name for result in state.executions if not result.success]
    return {
        "reason": reason,
        "text": _last_text(state.messages),
        "steps": state.step,
        "tool_calls": len(state.executions),
        "completed": [*done],
        "missing": [*failed, *not_started],
    }


def _last_text(messages: Sequence[ChatMessage]) -> JsonValue:
    said = (message["content"] for message in reversed(messages) if message["role"] == "assistant")
    return next((text for text in said if text), "")


def _count_bytes(messages: Sequence[ChatMessage]) -> int:
    """The length of what is said; the words around it do not matter here."""
    return sum(len(str(message["content"] or "").encode("utf-8", "replace")) for message in messages)
