"""Tests of gated functions below the decorators of frameworks: they are asked about, and run."""

from typing import Any

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
KINDS = ("def", "async def", "as async", "method", "async method", "with context")
CREWAI = "crewai"
FOR_MODEL = "send_money was denied by reviewer: too much. It did not run. Continue without it."
RAISED = {
    "langgraph": "Denied: send_money was denied by reviewer: too much",
    "pydantic_ai": "Denied: send_money was denied by reviewer: too much",
    "google_adk": "Denied: send_money was denied by reviewer: too much",
    "openai_agents": "An error occurred while running the tool. Please try again.",
    "autogen": "send_money was denied by reviewer: too much",
    "agent_framework": "Error: Function failed.",
    "mcp": "Error executing tool send_money",
    CREWAI: FOR_MODEL,
}
"""What the model of each framework reads after a denial that is raised, or how the run ends.

CrewAI gets no error, after which it would call the tool again.
"""

REGISTERED = {"pydantic_ai": "Pydantic AI", "mcp": "the MCP SDK"}
"""Frameworks whose decorators return the function itself."""


def play_kind(name: str, kind: str) -> Any:
    """Return the results of a kind of function; CrewAI passes no context to tools."""
    return play(name, folder="decorators")["def" if (name, kind) == (CREWAI, "with context") else kind]


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("kind", KINDS)
def test_gated_function_below_a_framework_is_asked_about_and_run(name: str, kind: str) -> None:
    assert play_kind(name, kind)["approves"] == {"ran": ["ann"], "asked": 1, "text": "sent to ann"}


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("kind", KINDS)
def test_denied_function_below_a_framework_does_not_run(name: str, kind: str) -> None:
    results = play_kind(name, kind)["denies"]
    assert results["ran"] == []
    assert (results["asked"], results["text"]) == (1, RAISED[name])


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("kind", KINDS)
def test_model_of_a_framework_reads_a_returned_denial(name: str, kind: str) -> None:
    assert play_kind(name, kind)["returns"] == {"ran": [], "asked": 1, "text": FOR_MODEL}


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("kind", ["def", "as async", "method", "with context"])
def test_plain_def_that_waits_lets_the_event_loop_run(name: str, kind: str) -> None:
    if name == "google_adk" and kind != "as async":
        assert play_kind(name, kind)["loop runs"] is False, (
            "ADK calls a plain def in its loop; docs/frameworks.md says so"
        )
    else:
        assert play_kind(name, kind)["loop runs"] is True


@pytest.mark.parametrize("name", RAISED)
def test_gate_above_the_decorator_of_a_framework_is_refused(name: str) -> None:
    refusals = play(name, folder="decorators")["above"]
    assert len(refusals) == 2
    for refused in refusals:
        why = f"is registered with {REGISTERED[name]} already" if name in REGISTERED else "Tool, not a function"
        assert why in refused
        assert refused.endswith("Put @gate directly above the def, below the decorators of frameworks.")


@pytest.mark.parametrize("name", ["pydantic_ai", "openai_agents", "google_adk", "agent_framework"])
def test_gated_coroutine_function_gets_the_context_of_a_framework(name: str) -> None:
    results = play(name, folder="decorators")["async with context"]
    assert results["approves"] == {"ran": ["ann"], "asked": 1, "text": "sent to ann"}
    assert results["denies"]["ran"] == []
