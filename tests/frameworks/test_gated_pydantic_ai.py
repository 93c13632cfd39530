"""A Pydantic AI agent runs no tool that nobody was asked about, and every approved call once, as approved."""

import pytest

from tests.frameworks.test_odd_agents import play

pytestmark = pytest.mark.timeout(300)
INNER = "with tools of its own (send_money), which would run without review."


@pytest.mark.parametrize("arguments", ["other arguments", "same arguments"])
def test_pydantic_ai_asks_anew_when_a_later_turn_reuses_an_id(arguments: str) -> None:
    told = play("pydantic_ai", "pydantic_ai_turns")["told"][arguments]
    receivers = [args["to"] for _, args in told["asked"]]
    assert receivers == (["ann", "bob"] if arguments == "other arguments" else ["ann", "ann"])
    assert told["ran"] == receivers
    assert told["result"]["text"] == " | ".join(f"sent to {to}" for to in receivers)


def test_pydantic_ai_does_not_give_an_earlier_denial_to_a_reused_id() -> None:
    told = play("pydantic_ai", "pydantic_ai_turns")["told"]
    assert told["after a denial"]["ran"] == ["bob"]
    assert told["after a denial"]["result"]["text"] == "Not Ann. | sent to bob"
    assert len(told["denied again"]["asked"]) == 2


def test_pydantic_ai_runs_approved_arguments_once_whatever_hooks_do() -> None:
    told = play("pydantic_ai", "pydantic_ai_turns")["told"]
    assert told["changed by a hook"]["ran"] == ["ann"]
    assert told["repeated by a hook"]["ran"] == ["ann"]
    assert len(told["repeated by a hook"]["asked"]) == 2


def test_pydantic_ai_tells_its_model_that_a_tool_may_not_put_a_call_off() -> None:
    told = play("pydantic_ai", "pydantic_ai_turns")["told"]["put off"]
    assert "The tool put_off deferred its call while it ran" in told["result"]["text"]


@pytest.mark.parametrize("tool", ["delegate"])
def test_pydantic_ai_gate_refuses_a_tool_that_calls_an_agent_with_tools(tool: str) -> None:
    refused = play("pydantic_ai", "pydantic_ai_turns")["refused"][tool]
    assert refused.startswith("The tool '")
    assert INNER in refused


@pytest.mark.parametrize("tool", ["speak"])
def test_pydantic_ai_gate_takes_what_calls_no_agent_with_tools(tool: str) -> None:
    assert play("pydantic_ai", "pydantic_ai_turns")["refused"][tool] is None
