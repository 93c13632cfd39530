"""Tests of gating agents of Agent Framework."""

from typing import Any

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
INNER = "runs an agent with tools of its own (send_money), which would run without review."
REFUSED = {
    "delegate": INNER,
    "as_tool": INNER,
    "declared": "The tool 'ask_client' runs outside this process and cannot be gated. Remove it.",
    "hosted": "The tool 'code_interpreter' runs outside this process and cannot be gated. Remove it.",
    "mcp": "Put Sayso's MCP proxy in front of them instead.",
    "client": "Use one with FunctionInvocationLayer enabled.",
}


def played(name: str) -> dict[str, Any]:
    results: dict[str, Any] = play("agent_framework")["results"][name]
    return results


@pytest.mark.parametrize("arguments", ["other arguments", "same arguments"])
def test_agent_framework_reviews_a_reused_call_id(arguments: str) -> None:
    results = played(arguments)
    receivers = [args["to"] for _, args in results["asked"]]
    assert receivers == (["ann", "bob"] if arguments == "other arguments" else ["ann", "ann"])
    assert results["ran"] == receivers
    assert results["result"]["text"] == " | ".join(f"sent to {to}" for to in receivers)


@pytest.mark.parametrize("calls", ["after a denial", "one id twice", "sibling of a denied call"])
def test_agent_framework_denial_applies_to_its_call_alone(calls: str) -> None:
    results = played(calls)
    assert (results["ran"], results["result"]["text"]) == (["bob"], "Not Ann. | sent to bob")


def test_agent_framework_asks_again_about_a_denied_call() -> None:
    results = played("denied again")
    assert (len(results["asked"]), results["ran"]) == (2, [])


def test_agent_framework_middleware_sees_no_denied_call() -> None:
    assert played("sibling of a denied call")["seen"] == ["bob"]


def test_agent_framework_middleware_checks_edited_arguments() -> None:
    assert (played("edited")["ran"], played("edited")["seen"]) == (["bob"], ["bob"])
    assert played("edited to a refused one")["result"]["text"] == "Mallory gets nothing."
    assert played("edited to a refused one")["ran"] == []
    assert played("edited from a refused one")["ran"] == ["bob"]


def test_agent_framework_reviews_arguments_that_middleware_changes() -> None:
    results = played("changed by middleware")
    assert [args["to"] for _, args in results["asked"]] == ["ann", "mallory"]
    assert (results["ran"], results["result"]["text"]) == ([], "Not again.")


def test_agent_framework_call_that_middleware_repeats_runs_once() -> None:
    results = played("repeated by middleware")
    assert results["ran"] == ["ann"]
    assert "No decision covers this call of send_money. It did not run." in results["error"]


def test_agent_framework_lists_its_tools_beside_an_approved_call() -> None:
    text = "sent to bob | There is no tool named 'fly'. There are: send_money."
    assert played("with an unknown tool")["result"]["text"] == text


def test_agent_framework_fails_a_tool_that_asks_while_it_runs() -> None:
    assert "The tool ask_back asked for input while it ran" in played("asks back")["result"]["text"]


def test_agent_framework_image_stays_an_image() -> None:
    assert played("image")["result"]["text"] == "data"


def test_agent_framework_runs_a_call_with_a_long_id() -> None:
    assert played("long id")["ran"] == ["ann"]


def test_agent_framework_tool_that_a_context_provider_brings_does_not_run() -> None:
    assert "brought was called inside the run of the gated agent 'bot' without review" in played("brought")["error"]
    assert played("brought")["ran"] == []


@pytest.mark.parametrize("agent", REFUSED)
def test_agent_framework_gate_refuses_what_could_run_without_review(agent: str) -> None:
    assert REFUSED[agent] in play("agent_framework")["refused"][agent]


@pytest.mark.parametrize("agent", ["speak", "as_tool without tools"])
def test_agent_framework_gate_accepts_tools_without_agents_with_tools(agent: str) -> None:
    assert play("agent_framework")["refused"][agent] is None
