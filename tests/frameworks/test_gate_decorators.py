"""Tests of gated functions below the decorators of frameworks: they are asked about, and run."""

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
FRAMEWORKS = ("langgraph", "pydantic_ai", "openai_agents", "autogen")
KINDS = ("def", "async def", "method", "async method", "with context")


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_gated_function_below_a_framework_is_asked_about_and_run(name: str, kind: str) -> None:
    results = play(name, folder="decorators")[kind]
    assert results["approves"] == {"ran": ["ann"], "asked": 1, "text": "sent to ann"}


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_denied_function_below_a_framework_does_not_run(name: str, kind: str) -> None:
    results = play(name, folder="decorators")[kind]["denies"]
    assert (results["ran"], results["asked"]) == ([], 1)
    assert "sent" not in results["text"]


@pytest.mark.parametrize("name", ["pydantic_ai", "openai_agents"])
def test_gated_coroutine_function_gets_the_context_of_a_framework(name: str) -> None:
    results = play(name, folder="decorators")["async with context"]
    assert results["approves"] == {"ran": ["ann"], "asked": 1, "text": "sent to ann"}
    assert results["denies"]["ran"] == []
