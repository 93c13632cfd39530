"""Tests of gating CrewAI agents and crews."""

from typing import Any

import pytest

from tests.frameworks.test_edge_cases import play

pytestmark = pytest.mark.timeout(300)
UNCLEAR = "A hook changed the arguments of send_money, so it is not known which decision applies. It did not run."


def played(name: str) -> dict[str, Any]:
    results: dict[str, Any] = play("crewai")["results"][name]
    return results


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        ("delegation", "'payer' has allow_delegation, which lets other agents work. Build it without."),
        ("planning", "'payer' has planning, which runs steps of a plan. Build it without."),
        ("words", "The model of 'payer' has no function calling, so its calls cannot be held. Use another model."),
        ("inner agent", "The tool 'delegate' runs an agent with tools of its own (send_money)"),
        ("hierarchy", "The crew is not sequential"),
        ("console", "'Task' has human_input, which asks at a console. Build it without."),
        ("nothing", "build returned a NoneType. Return an Agent or a Crew."),
        ("two of one name", "Two tools are named 'send_money'. Rename one of them."),
    ],
)
def test_crewai_gate_refuses_what_could_run_ungated(agent: str, error: str) -> None:
    assert play("crewai")["refused"][agent].startswith(error)


@pytest.mark.parametrize(("name", "turns"), [("edited", [0, 1]), ("repeated", [0, 1, 2]), ("crew", [0, 1, 0, 1])])
def test_crewai_asks_its_models_once_for_each_turn(name: str, turns: list[int]) -> None:
    assert played(name)["turns"] == turns


def test_crewai_runs_the_approved_one_of_two_equal_calls() -> None:
    results = played("equal calls")
    assert (results["ran"], results["result"]["text"]) == (["ann"], "Not the first. | sent to ann")


def test_crewai_runs_a_repeated_call_instead_of_its_cached_result() -> None:
    results = played("repeated")
    assert (len(results["asked"]), results["ran"]) == (2, ["ann", "ann"])


def test_crewai_applies_no_earlier_denial_to_a_repeated_call() -> None:
    results = played("denied again")
    assert (len(results["asked"]), results["ran"], results["result"]["text"]) == (2, [], "No. | No.")


@pytest.mark.parametrize("name", ["long id", "async"])
def test_crewai_runs_an_approved_call(name: str) -> None:
    results = played(name)
    assert (results["ran"], results["result"]["text"]) == (["ann"], "sent to ann")


def test_crewai_keeps_the_limit_of_a_tool_across_suspensions() -> None:
    results = played("limited")
    assert results["ran"] == ["ann"]
    assert "has reached its usage limit of 1 times" in results["result"]["text"]


def test_crewai_answers_a_call_of_an_unknown_tool_itself() -> None:
    results = played("unknown")
    assert ([args["to"] for _, args in results["asked"]], results["ran"]) == (["bob"], ["bob"])
    assert results["result"]["text"] == "Tool not found | sent to bob"


def test_crewai_resumes_without_a_removed_tool() -> None:
    assert played("removed")["result"]["text"] == "Tool not found"


def test_crewai_resumes_each_agent_of_a_crew() -> None:
    results = played("crew")
    assert [args["to"] for _, args in results["asked"]] == ["ann", "bob"]
    assert (results["ran"], results["result"]["text"]) == (["bob"], "sent to bob")


def test_crewai_plays_an_answer_with_fields_back() -> None:
    results = played("fields")
    assert (results["error"], results["ran"], results["result"]["text"]) == (None, ["bob"], "sent to bob")


def test_crewai_hook_blocks_an_approved_call() -> None:
    results = played("block")
    assert results["ran"] == ["bob"]
    assert results["result"]["text"] == "Tool execution blocked by hook. Tool: send_money | sent to bob"


def test_crewai_hook_changes_no_approved_arguments() -> None:
    assert played("change one")["ran"] == ["ann"]
    assert played("change")["ran"] == []
    assert played("change")["result"]["text"].count(UNCLEAR) == 2
