"""Tests of rare cases of all frameworks, without a server."""

import json
import subprocess
from functools import cache
from typing import Any

import pytest

from service.core.settings import CHECKOUT
from tests.frameworks.conftest import INSTALLED
from tests.frameworks.kinds import find_python


@cache
def play(name: str, module: str = "", folder: str = "edge_cases") -> dict[str, Any]:
    """Return the output of a module of a folder, run in the environment of its framework."""
    if name not in INSTALLED:
        pytest.skip(f"{name} was not asked for")
    command = [str(find_python(name)), "-m", f"tests.frameworks.{folder}.{module or name}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def test_pydantic_ai_shows_its_model_every_kind_of_result() -> None:
    turn = play("pydantic_ai")
    results = turn["results"]
    assert "The tool ran, but what it returned is not JSON" in results["bytes"][0]
    assert results["image"][0].startswith("BinaryContent: ")
    assert results["note"] == ["str: noted", "list: ['Look at this.']"]
    assert "A reviewer changed the arguments" in results["edited"][0]
    assert results["edited"][0].endswith("Result: less")
    assert results["long id"] == ["str: it"]
    assert turn["external"] == "The tool 'ask_client' runs outside this process and cannot be gated. Remove it."
    assert turn["capability"].startswith("The agent has a capability with tools, which cannot be gated.")


def test_langchain_lists_its_tools_for_an_unknown_one() -> None:
    turn = play("langgraph")
    for mode in ("batched", "per_call"):
        assert turn[mode]["asked"] == [["c1", {"what": "a"}]]
        assert "There is no tool named 'fly'. There are: fetch. | fetched a" in turn[mode]["result"]["text"]
    assert turn["twice"]["result"]["text"] == "fetched b | fetched c"
    assert turn["ran"] == ["a", "a", "b", "c", "d", "f"]


def test_langchain_resumes_without_a_removed_tool() -> None:
    text = play("langgraph")["later"]["result"]["text"]
    assert "The agent no longer has the tool burn." in text
    assert text.endswith("| fetched f")


def test_langchain_returns_a_structured_response() -> None:
    assert play("langgraph")["typed"]["result"] == {"total": 3}


def test_langchain_does_not_start_with_an_unlisted_tool() -> None:
    error = "The agent has tools that gate(tools=…) does not list: burn. Add them."
    assert play("langgraph")["foreign"] == error


def test_autogen_returns_results_with_long_call_ids() -> None:
    turn = play("autogen")
    assert (turn["result"], turn["under its own ids"]) == ({"text": "fetched a | fetched b"}, True)


def test_autogen_gate_refuses_two_tools_of_one_name() -> None:
    assert play("autogen")["two"] == "Two tools are named 'fetch'. Rename one of them."


def test_openai_agents_runs_up_to_max_turns() -> None:
    assert play("openai_agents")["long"]["result"] == {"text": "12 turns"}


def test_openai_agents_gate_refuses_an_agent_tool_with_tools() -> None:
    assert play("openai_agents")["inner"].endswith("Add them to the gated agent, or list 'burner' in its handoffs.")
