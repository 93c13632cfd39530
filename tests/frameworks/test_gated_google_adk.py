"""Tests of gating Google ADK agents."""

from typing import Any

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)


def played(name: str) -> dict[str, Any]:
    results: dict[str, Any] = play("google_adk")["results"][name]
    return results


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        ("agent as a tool", "The tool 'payer' runs the agent 'payer' with tools of its own (send_money)"),
        ("agent in a function", "The tool 'delegate' runs the agent 'payer' with tools of its own (send_money)"),
        ("toolset", "The agent 'bot' has a Tools, whose tools are not known before the run."),
        ("long-running", "The tool 'send_money' of 'bot' is no function that the model calls in this process."),
        ("of the provider", "The tool 'google_search' of 'bot' is no function that the model calls in this process."),
        ("code", "The agent 'bot' has a code_executor"),
        ("sequence", "The agent 'steps' is a SequentialAgent, which ADK cannot resume in the middle."),
        ("single turn", "The agent 'once' is a single_turn agent, which ADK cannot resume in the middle."),
        ("two of one name", "Two tools are named 'send_money'. Rename one of them."),
    ],
)
def test_google_adk_gate_refuses_what_could_run_ungated(agent: str, error: str) -> None:
    assert play("google_adk")["refused"][agent].startswith(error)


def test_google_adk_gate_accepts_an_agent_tool_without_tools() -> None:
    assert play("google_adk")["refused"]["agent without tools"] is None


@pytest.mark.parametrize("ids", ["equal ids", "no ids", "id again"])
def test_google_adk_runs_the_approved_call_of_two_with_one_id(ids: str) -> None:
    results = played(ids)
    assert [args["to"] for _, args in results["asked"]] == ["ann", "bob"]
    assert len({call_id for call_id, _ in results["asked"]}) == 2
    assert results["ran"] == ["bob"]
    assert results["result"]["text"] == "{'error': 'Not Ann.'} | sent to bob"


def test_google_adk_applies_no_earlier_denial_to_a_repeated_call() -> None:
    results = played("denied again")
    assert (len(results["asked"]), results["ran"]) == (2, [])


def test_google_adk_resumes_a_call_with_a_long_id() -> None:
    assert played("long id")["result"]["text"] == "sent to ann"


def test_google_adk_runs_approved_arguments_despite_callbacks() -> None:
    assert played("changed by a callback")["ran"] == ["ann"]


def test_google_adk_callbacks_check_edited_arguments() -> None:
    results = played("answered by a callback")
    assert (results["ran"], results["result"]["text"]) == ([], "eve gets nothing")


def test_google_adk_asks_once_about_a_tool_that_requires_confirmation() -> None:
    assert played("asks by itself")["asked"] == [["c0", {"to": "ann"}], ["c1", {"to": "bob"}]]
    assert played("asks by itself")["result"]["text"] == "{'error': 'Not Ann.'} | sent to bob"


def test_google_adk_lists_its_tools_for_an_unknown_one() -> None:
    results = played("unknown")
    assert [args["to"] for _, args in results["asked"]] == ["bob"]
    assert "The tools you can call are: send_money." in results["result"]["text"]
    assert results["result"]["text"].endswith("| sent to bob")


def test_google_adk_resumes_without_a_removed_tool() -> None:
    assert "The agent no longer has the tool send_money." in played("removed")["result"]["text"]


def test_google_adk_shows_its_model_an_image() -> None:
    assert played("image")["images"] == ["image/png"]


def test_google_adk_fails_a_run_whose_model_is_blocked() -> None:
    results = played("blocked")
    assert (results["ran"], results["error"]) == (["ann"], "SAFETY: The prompt was blocked.")


def test_google_adk_does_not_hand_off_while_a_call_waits() -> None:
    results = played("beside a handoff")
    assert [args["to"] for _, args in results["asked"]] == ["bob"]
    assert results["result"]["text"].startswith("{'error': 'Not run: it cannot be combined with other tool calls.")
