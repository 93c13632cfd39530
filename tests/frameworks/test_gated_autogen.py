"""Tests of gating AutoGen agents and teams."""

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
INNER = "with tools of its own (send_money), which would run without review."


@pytest.mark.parametrize(
    ("team", "error"),
    [
        ("ungated", "The agent 'b' has tools that would run without review (send_money)."),
        ("alone", "The agent 'b' has tools that would run without review (send_money)."),
        ("society", "The agent 's' is a SocietyOfMindAgent, which could run tools without review."),
        ("round robin", "build returned a RoundRobinGroupChat, which selects the next speaker itself"),
        ("selector", "build returned a SelectorGroupChat, which selects the next speaker itself"),
        ("endless", "The Swarm does not end when an agent waits."),
    ],
)
def test_autogen_gate_refuses_a_team_with_ungated_tools(team: str, error: str) -> None:
    assert play("autogen", "autogen_teams")[team].startswith(error)


@pytest.mark.parametrize("tool", ["agent tool", "team tool", "function"])
def test_autogen_gate_refuses_a_tool_that_calls_an_agent_with_tools(tool: str) -> None:
    refused = play("autogen", "autogen_teams")[tool]
    assert refused.startswith("The tool '")
    assert INNER in refused


@pytest.mark.parametrize("tool", ["speaker", "with a person", "gated"])
def test_autogen_gate_accepts_tools_without_agents_with_tools(tool: str) -> None:
    assert play("autogen", "autogen_teams")[tool] is None
