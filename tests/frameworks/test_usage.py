"""Tests of the tokens that adapters report, which rules about the cost of a run read."""

from typing import Any

import pytest

from tests.frameworks.test_edge_cases import play
from tests.frameworks.usage.counting import CALLS, GIVEN, MADE

pytestmark = pytest.mark.timeout(300)

MODELS = {
    "pydantic_ai": "player-1",
    "openai_agents": "player-1",
    "agent_framework": "player-1",
    "langgraph": "player-1",
    "autogen": "player-1",
    "parsimony": "player/1",
    "afk": "player",
    "google_adk": "player-1",
    "crewai": "player-1",
}
ESTIMATED = {"parsimony"}
"""Frameworks that estimate the tokens of a model that reports none."""

FIRST_TWO_PASS = ["allow", "allow", "request_approval", "request_approval"]


def count(name: str) -> dict[str, Any]:
    return play(name, folder="usage")


def used(model: str, calls: int, given: int = GIVEN, made: int = MADE) -> dict[str, Any]:
    return {"model": model, "input_tokens": calls * given, "output_tokens": calls * made, "model_calls": calls}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rule", ["reported", "priced"])
def test_calls_beyond_the_tokens_of_a_rule_are_held(name: str, rule: str) -> None:
    """The run is resumed twice: earlier model calls are neither lost nor counted again."""
    seen = count(name)[rule]
    assert [action for _, action in seen] == FIRST_TWO_PASS
    assert [usage for usage, _ in seen] == [[used(MODELS[name], calls)] for calls in range(1, CALLS + 1)]


@pytest.mark.parametrize("name", sorted(MODELS.keys() - ESTIMATED))
def test_call_is_held_while_the_tokens_are_unknown(name: str) -> None:
    assert count(name)["missing"] == [[None, "request_approval"]] * CALLS


@pytest.mark.parametrize(
    ("name", "speaker"),
    [("pydantic_ai", ""), ("openai_agents", ""), ("langgraph", "speaker-1"), ("google_adk", "speaker-1")],
)
def test_model_inside_a_tool_counts(name: str, speaker: str) -> None:
    """Its name is not known to every framework; then the cost is unknown, and the tokens are not."""
    seen = count(name)["inner"]
    assert [action for _, action in seen] == FIRST_TWO_PASS
    for calls, (usage, _) in enumerate(seen):
        by_model = sorted(usage, key=lambda one: one["input_tokens"], reverse=True)
        inner = [used(speaker, calls, 7, 3)] if calls else []
        assert by_model == [used("player-1", calls + 1), *inner]
