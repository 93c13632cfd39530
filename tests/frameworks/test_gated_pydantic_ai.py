"""Tests of gating Pydantic AI agents."""

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
INNER = "with tools of its own (send_money), which would run without review."


@pytest.mark.parametrize("arguments", ["other arguments", "same arguments"])
def test_pydantic_ai_reviews_a_reused_call_id(arguments: str) -> None:
    results = play("pydantic_ai", "pydantic_ai_turns")["results"][arguments]
    receivers = [args["to"] for _, args in results["asked"]]
    assert receivers == (["ann", "bob"] if arguments == "other arguments" else ["ann", "ann"])
    assert results["ran"] == receivers
    assert results["result"]["text"] == " | ".join(f"sent to {to}" for to in receivers)


def test_pydantic_ai_applies_no_earlier_denial_to_a_reused_id() -> None:
    results = play("pydantic_ai", "pydantic_ai_turns")["results"]
    assert results["after a denial"]["ran"] == ["bob"]
    assert results["after a denial"]["result"]["text"] == "Not Ann. | sent to bob"
    assert len(results["denied again"]["asked"]) == 2


def test_pydantic_ai_runs_approved_arguments_once_despite_hooks() -> None:
    results = play("pydantic_ai", "pydantic_ai_turns")["results"]
    assert results["changed by a hook"]["ran"] == ["ann"]
    assert results["repeated by a hook"]["ran"] == ["ann"]
    assert len(results["repeated by a hook"]["asked"]) == 2


def test_pydantic_ai_fails_a_tool_that_defers() -> None:
    results = play("pydantic_ai", "pydantic_ai_turns")["results"]["put off"]
    assert "The tool put_off deferred its call while it ran" in results["result"]["text"]


@pytest.mark.parametrize("tool", ["delegate"])
def test_pydantic_ai_gate_refuses_a_tool_that_calls_an_agent_with_tools(tool: str) -> None:
    refused = play("pydantic_ai", "pydantic_ai_turns")["refused"][tool]
    assert refused.startswith("The tool '")
    assert INNER in refused


@pytest.mark.parametrize("tool", ["speak"])
def test_pydantic_ai_gate_accepts_tools_without_agents_with_tools(tool: str) -> None:
    assert play("pydantic_ai", "pydantic_ai_turns")["refused"][tool] is None
