"""Tests of gating OpenAI Agents SDK agents."""

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
INNER = "with tools of its own (send_money), which would run without review."


@pytest.mark.parametrize("tool", ["agent as a tool", "agent in a function", "agent that hands off"])
def test_openai_agents_gate_refuses_a_tool_that_calls_an_agent_with_tools(tool: str) -> None:
    refused = play("openai_agents", "openai_agents_guarded")[tool]
    assert refused.startswith("The tool '")
    assert INNER in refused


@pytest.mark.parametrize("tool", ["agent without tools"])
def test_openai_agents_gate_accepts_tools_without_agents_with_tools(tool: str) -> None:
    assert play("openai_agents", "openai_agents_guarded")[tool] is None


def test_openai_agents_guardrails_check_edited_arguments() -> None:
    output = play("openai_agents", "openai_agents_guarded")
    assert output["edited to a refused one"]["result"] == {"text": "Mallory gets nothing."}
    assert output["edited to one that stops the run"]["error"] == "The guardrail only_known stopped the run."
    assert output["edited from a refused one"]["result"]["text"].endswith("Result: sent to bob")
    assert output["ran"] == ['ann, as {"to":"ann"}', 'bob, as {"to": "bob"}']
