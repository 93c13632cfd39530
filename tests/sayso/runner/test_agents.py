"""An agent that cannot work is refused when it is declared, or when its path is imported."""

import sys
from pathlib import Path
from typing import Any

import pytest

from sayso.core.records.terms import Fallback, FallbackAction
from sayso.errors import InvalidInput
from sayso.runner.agents import Agent, load_agents
from sayso.runner.models import ScriptedModel
from sayso.runner.tools import tool


@tool
def look(order: str) -> str:
    """Look an order up."""
    return order


def agent(**changes: Any) -> Agent:
    parts = {"name": "support", "instructions": "Be kind.\nAlways.", "tools": (look,), "model": ScriptedModel([])}
    return Agent(**{**parts, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "1 to 100 characters"),
        ({"tools": (look, look)}, "two of its tools are named look"),
        ({"approval_denial_policy": "ignore"}, "none of continue, degrade, fail"),
        ({"interaction": "phone"}, "neither desk nor headless"),
        ({"approval_timeout_s": -1}, "approval_timeout_s"),
        ({"approval_fallback": Fallback(action=FallbackAction.ESCALATE)}, "approval_fallback"),
        ({"input_fallback": Fallback(action=FallbackAction.APPROVE)}, "input_fallback"),
        ({"context": {"at": object()}}, "not plain JSON"),
    ],
)
def test_agent_refuses_a_faulty_declaration(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        agent(**changes)


def test_manifest_is_plain_json_with_a_digest_of_its_tools() -> None:
    manifest = agent().manifest()
    assert (manifest.name, manifest.description, manifest.approval_denial_policy) == ("support", "Be kind.", "continue")
    assert manifest.tools == (look.definition,)
    assert type(manifest).model_validate_json(manifest.model_dump_json()) == manifest
    assert agent(instructions="Be quick.").manifest().digest == manifest.digest
    assert agent(tools=()).manifest().digest != manifest.digest
    assert agent(description="Helps.").manifest().description == "Helps."


MODULE = """
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel

one = Agent(name="one", instructions="", tools=(), model=ScriptedModel([]))
twin = Agent(name="one", instructions="", tools=(), model=ScriptedModel([]))
two = Agent(name="two", instructions="", tools=(), model=ScriptedModel([]))
word = "agent"
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fleet_of_tests.py").write_text(MODULE)
    (tmp_path / "broken_fleet.py").write_text("raise RuntimeError('no network')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("fleet_of_tests", "broken_fleet"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("modules")
def test_load_agents_imports_by_path() -> None:
    found = load_agents(["fleet_of_tests:one", "fleet_of_tests:two"])
    assert {name: one.name for name, one in found.items()} == {"one": "one", "two": "two"}


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["no_such_fleet:one"], "no_such_fleet cannot be imported. ModuleNotFoundError"),
        (["broken_fleet:one"], "broken_fleet cannot be imported. RuntimeError: no network"),
        (["fleet_of_tests:three"], "has no 'three'"),
        (["fleet_of_tests:word"], "is a str, not an Agent"),
        (["fleet_of_tests"], "Write it as package.module:attribute"),
        ([":one"], "Write it as package.module:attribute"),
        (["fleet_of_tests:one", "fleet_of_tests:twin"], "fleet_of_tests:twin is a second agent named 'one'"),
    ],
)
def test_load_agents_names_a_faulty_path(paths: list[str], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_agents(paths)
    assert words in refused.value.message
