"""Integers of any size reach the tools of every framework exactly, as the model sent them and as people edit them."""

import json
import subprocess
from typing import Any

import pytest

from service.core.settings import CHECKOUT
from tests.frameworks.conftest import CHOSEN
from tests.frameworks.kinds import Kind

BEYOND = (2**53 + 1, -(2**63))


def run(kind: Kind, *numbers: int) -> dict[str, Any]:
    """Return what a bot ran, in the environment of its framework."""
    command = [str(kind.python), "-m", "tests.frameworks.run_exact", kind.module, *map(str, numbers)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("kind", CHOSEN, ids=lambda kind: kind.name)
def test_integer_reaches_the_tool_exactly(kind: Kind) -> None:
    numbers = BEYOND if kind.environment == "langgraph" else (*BEYOND, 2**80)
    found = run(kind, *numbers)
    assert found["ran"] == {f"{how} {one}": str(one) for one in numbers for how in ("send", "edit")}, found
