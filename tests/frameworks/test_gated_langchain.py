"""Tests of gating LangChain agents."""

from typing import Any

import pytest

from tests.frameworks.kinds import IS_LOWEST
from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
INNER = "with tools of its own (send_money), which would run without review."


@pytest.mark.parametrize("tool", ["delegate", "delegate_by_name", "as_tool"])
def test_langchain_gate_refuses_a_tool_that_calls_an_agent_with_tools(tool: str) -> None:
    refused = play("langgraph", "langgraph_agents")["refused"][tool]
    assert refused.startswith("The tool '")
    assert INNER in refused


def test_deep_agent_is_gated_by_a_profile_without_task() -> None:
    if IS_LOWEST:
        pytest.skip("deepagents requires newer packages than the oldest of the adapter")
    output = play("langgraph", "deep_agents")
    assert output["refused"].startswith("The tool 'task' calls an agent")
    assert output["played"]["asked"] == [["c1", {"to": "ann"}], ["c2", {"path": "/"}]]
    assert output["played"]["result"]["text"].startswith("sent to ann | ")
    assert output["ran"] == ["ann"]


@pytest.mark.parametrize("tool", ["speak", "send_twice"])
def test_langchain_gate_accepts_tools_without_agents_with_tools(tool: str) -> None:
    assert play("langgraph", "langgraph_agents")["refused"][tool] is None


@pytest.mark.parametrize("tool", ["delegate_to_a_new_one", "loop_by_hand"])
def test_langchain_refuses_calls_of_a_model_inside_a_tool(tool: str) -> None:
    output = play("langgraph", "langgraph_agents")
    assert output["ran"][tool] == []
    words = f"send_money was called inside {tool} without review, so it did not run."
    assert words in output["played"][tool]["result"]["text"]


def test_langchain_runs_tools_that_a_tools_code_calls() -> None:
    assert play("langgraph", "langgraph_agents")["ran"]["send_twice"] == ["bob", "cid"]


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ("retry behind", "The middleware ToolRetryMiddleware comes after Sayso's"),
        ("change behind", "The middleware Changing comes after Sayso's"),
        ("own questions", "The agent has a HumanInTheLoopMiddleware of its own (interrupt_on=)"),
        ("own questions first", "The agent has a HumanInTheLoopMiddleware of its own (interrupt_on=)"),
        ("no middleware", "The tools send_money would run without Sayso's middleware"),
        ("own node", "The tools send_money would run without Sayso's middleware"),
        ("around an agent", "The tools send_money would run without Sayso's middleware"),
        ("ask", "The tool 'ask' interrupts the graph while it runs"),
    ],
)
def test_langchain_gate_refuses_a_graph_that_could_bypass_it(order: str, error: str) -> None:
    assert play("langgraph", "langgraph_agents")["refused"][order].startswith(error)


def test_langchain_runs_approved_arguments_once_behind_other_middleware() -> None:
    assert play("langgraph", "langgraph_agents")["ran"]["behind others"] == ["eve"]


def test_langchain_fails_a_tool_that_interrupts() -> None:
    text = play("langgraph", "langgraph_agents")["played"]["ask_hidden"]["result"]["text"]
    assert "ask_hidden interrupted the graph while it ran and was stopped" in text


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("ids", ["equal", "empty", "again"])
def test_langchain_runs_the_approved_call_of_two_with_one_id(ids: str, mode: str) -> None:
    output = play("langgraph", "langgraph_agents")
    name = f"{ids}, {mode}"
    played: dict[str, Any] = output["played"][name]
    assert [args["to"] for _, args in played["asked"]] == ["ann", "bob"]
    assert len({call_id for call_id, _ in played["asked"]}) == 2
    assert output["ran"][name] == ["bob"]
    assert "Not Ann." in played["result"]["text"]


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_langchain_runs_no_denied_call_that_middleware_sends_to_the_tools(mode: str) -> None:
    output = play("langgraph", "langgraph_agents")
    name = f"jump after the decision, {mode}"
    assert output["ran"][name] == ["bob"]
    assert "Not Ann." in output["played"][name]["result"]["text"]


def test_langchain_runs_no_call_that_middleware_sends_to_the_tools_undecided() -> None:
    output = play("langgraph", "langgraph_agents")
    name = "jump before the decision, batched"
    assert output["ran"][name] == []
    assert output["played"][name]["error"] == "No decision covers this call of send_money. It did not run."
