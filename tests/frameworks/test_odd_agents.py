"""What agents seldom do ends as clearly as what they do every day; each is played without a server."""

import json
import subprocess
from functools import cache
from typing import Any

import pytest

from service.settings import CHECKOUT
from tests.frameworks.conftest import CHOSEN


@cache
def play(name: str, module: str = "") -> dict[str, Any]:
    """Return what a module of `odd` has printed in its framework's environment, after which most are named."""
    kind = next((one for one in CHOSEN if one.environment == name), None)
    if kind is None:
        pytest.skip(f"{name} was not asked for")
    command = [str(kind.python), "-m", f"tests.frameworks.odd.{module or name}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_pydantic_ai_tells_its_model_what_ran_and_shows_it_what_a_tool_returned() -> None:
    said = play("pydantic_ai")
    told = said["told"]
    assert "The tool ran, but what it returned is not JSON" in told["bytes"][0]
    assert told["image"][0].startswith("BinaryContent: ")
    assert told["note"] == ["str: noted", "list: ['Look at this.']"]
    assert "A reviewer changed the arguments" in told["edited"][0]
    assert told["edited"][0].endswith("Result: less")
    assert told["long id"] == ["str: it"]
    assert said["external"] == "The tool 'ask_client' runs outside this process and cannot be gated. Remove it."
    assert said["capability"].startswith("The agent has a capability with tools, which cannot be gated.")


def test_a_langchain_agent_whose_model_makes_up_a_tool_is_told_so_and_goes_on() -> None:
    said = play("langgraph")
    for mode in ("batched", "per_call"):
        assert said[mode]["asked"] == [["c1", {"what": "a"}]]
        assert "There is no tool named 'fly'. There are: fetch. | fetched a" in said[mode]["result"]["text"]
    assert said["twice"]["result"]["text"] == "fetched b | fetched c"
    assert said["ran"] == ["a", "a", "b", "c", "d", "f"]


def test_a_langchain_agent_that_lost_a_tool_while_it_waited_goes_on_with_the_others() -> None:
    text = play("langgraph")["later"]["result"]["text"]
    assert "The agent no longer has the tool burn." in text
    assert text.endswith("| fetched f")


def test_a_langchain_agent_that_answers_in_a_form_of_its_own_ends_with_that() -> None:
    assert play("langgraph")["typed"]["result"] == {"total": 3}


def test_a_langchain_agent_does_not_begin_with_a_tool_that_nobody_would_be_asked_about() -> None:
    error = "The agent has tools that gate(tools=…) does not list: burn. Add them."
    assert play("langgraph")["foreign"] == error


def test_an_autogen_model_is_told_under_its_own_ids_however_long() -> None:
    said = play("autogen")
    assert (said["result"], said["under its own ids"]) == ({"text": "fetched a | fetched b"}, True)


def test_two_tools_of_one_name_in_an_autogen_team_are_refused() -> None:
    assert play("autogen")["two"] == "Two tools are named 'fetch'. Rename one of them."


def test_an_agent_of_openai_agents_takes_as_many_turns_as_its_gate_says() -> None:
    assert play("openai_agents")["long"]["result"] == {"text": "12 turns"}


def test_an_agent_as_a_tool_whose_own_tools_ask_is_refused_before_anything_begins() -> None:
    assert play("openai_agents")["inner"].endswith("Add them to the gated agent, or list 'burner' in its handoffs.")
