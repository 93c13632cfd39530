"""Tests of the subagents that adapters report."""

import json
import subprocess

import pytest

from service.core.settings import CHECKOUT
from tests.frameworks.conftest import CHOSEN


@pytest.mark.parametrize("name", ["openai_agents", "autogen", "langgraph", "google_adk"])
def test_call_of_a_subagent_names_it(name: str) -> None:
    kind = next((one for one in CHOSEN if one.environment == name), None)
    if kind is None:
        pytest.skip(f"{name} was not asked for")
    command = [str(kind.python), "-m", f"tests.frameworks.edge_cases.handoff_{name}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"alone": [["fetch", ""]], "handed": [["fetch", "writer"]]}
