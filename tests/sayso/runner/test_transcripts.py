"""What a step adds to a run, and when there is no room for another."""

import pytest

from sayso.core.records.suspensions import RunRef
from sayso.core.records.tools import ToolResult
from sayso.runner.agents import Budgets
from sayso.runner.batches import Batch
from sayso.runner.models import ModelTurn
from sayso.runner.transcripts import (
    RunState,
    add_results,
    add_turn,
    describe_run,
    find_exceeded,
    report_turn,
    start_state,
    summarise,
)
from tests.sayso.runners import turn

START = start_state("run_1", "support", "Refund A-1", {"tier": "gold"})
GOOD = ToolResult(call_id="c0", tool_name="look", success=True, output="open", latency_ms=1.5)
BAD = ToolResult(call_id="c1", tool_name="drop", success=False, error="Denied by policy")


def test_start_state_has_the_input_and_its_own_thread() -> None:
    assert START.messages == ({"role": "user", "content": "Refund A-1"},)
    assert (START.thread_id, START.step, START.batch) == ("run_1", 0, None)
    assert type(START).model_validate_json(START.model_dump_json()) == START


def test_add_results_appends_messages_and_clears_the_batch() -> None:
    asked = add_turn(START, turn(("look", {"order": "A"}), ("drop", "{")))
    assert (asked.step, asked.tool_calls) == (1, 2)
    calls = asked.messages[-1]["tool_calls"]
    assert isinstance(calls, list)
    assert [call["function"] for call in calls if isinstance(call, dict)] == [
        {"name": "look", "arguments": '{"order": "A"}'},
        {"name": "drop", "arguments": "{}"},
    ], "what cannot be read is left out, for some endpoints refuse a whole transcript for it"
    batch = Batch(calls=(), started_step=1)
    completed = add_results(asked.model_copy(update={"batch": batch}), [GOOD, BAD])
    assert completed.batch is None
    assert completed.executions == (GOOD, BAD)
    assert [message["content"] for message in completed.messages[-2:]] == [
        '{"success": true, "output": "open", "tool_call_id": "c0"}',
        '{"success": false, "error": "Denied by policy", "tool_call_id": "c1"}',
    ]


def test_describe_run_has_the_facts_for_rules() -> None:
    about = describe_run(add_turn(START, ModelTurn(text="x")))
    assert (about.run_id, about.thread_id, about.step, about.agent) == ("run_1", "run_1", 1, "support")
    assert (about.context, about.claimed, about.subagent_name) == ({}, {"tier": "gold"}, "")


def test_state_of_an_earlier_version_has_its_context_as_claims() -> None:
    """The former `context` came from the caller, so it stays a claim."""
    saved = {**START.model_dump(mode="json", exclude={"claimed"}), "context": {"tier": "gold"}}
    assert RunState.model_validate(saved).claimed == {"tier": "gold"}
    run = {"id": "r", "agent": "a", "owner": "o", "thread_id": "t", "context": {"tier": "gold"}}
    assert RunRef.model_validate(run).claimed == {"tier": "gold"}
    assert RunRef.model_validate(run).facts == {}


@pytest.mark.parametrize(("reason", "warned"), [(None, 0), ("stop", 0), ("tool_calls", 0), ("content_filter", 1)])
def test_report_turn_warns_of_a_turn_cut_off(reason: str | None, warned: int) -> None:
    assert len(report_turn(ModelTurn(text="x", finish_reason=reason))) == 1 + warned


@pytest.mark.parametrize(
    ("budgets", "spent_ms", "exceeded"),
    [
        (Budgets(), 0, None),
        (Budgets(max_steps=2), 0, None),
        (Budgets(max_steps=1), 0, "max_steps"),
        (Budgets(max_wall_time_s=1), 999, None),
        (Budgets(max_wall_time_s=1), 1000, "max_wall_time_s"),
        (Budgets(max_transcript_bytes=12), 0, None),
        (Budgets(max_transcript_bytes=11), 0, "max_transcript_bytes"),
        (Budgets(max_tool_calls=0), 0, None),
    ],
)
def test_find_exceeded_at_each_limit(budgets: Budgets, spent_ms: float, exceeded: str | None) -> None:
    found = find_exceeded(budgets, add_turn(START, ModelTurn(text="é")), spent_ms)
    assert (found.budget if found else None) == exceeded


def test_summarise_has_last_text_and_completed_calls() -> None:
    state = add_turn(START, turn(("look", {}), ("drop", {}), text="I looked."))
    state = add_turn(add_results(state, [GOOD, BAD]), turn(("look", {})))
    assert summarise(state, "Enough.", ["look"]) == {
        "reason": "Enough.",
        "text": "I looked.",
        "steps": 2,
        "tool_calls": 2,
        "completed": ["look"],
        "missing": ["drop", "look"],
    }
    assert summarise(START, "Enough.")["text"] == ""
