"""Many held calls without a connection: all decided, and each approved one runs once. `HELD=1000` holds so many."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from demo.stacks import Stack, running_stack
from service.core.settings import CHECKOUT
from tests.frameworks.mcp.desks import PYTHON, Desk

pytestmark = pytest.mark.timeout(300)

CALLS, PAGE = int(os.environ.get("HELD", "200")), 200
POOLED = 20
"""Idle connections that the client of the desk keeps."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Sayso for a company, whose agents may have that many open items."""
    environ = {
        "SAYSO_POLICY": str(CHECKOUT / "tests" / "frameworks" / "policy.yaml"),
        "SAYSO_SIZE": "company",
    }
    with running_stack(tmp_path_factory.mktemp("many"), environ) as stack:
        yield stack


def play(desk: Desk, *args: str, text: str = "") -> Any:
    """Run the program in its own process and return what it prints."""
    command = [PYTHON, "-m", "tests.frameworks.mcp.held_calls", *args]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=desk.environ(), input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_held_calls_hold_no_connection_and_run_once(desk: Desk) -> None:
    held = play(desk, str(CALLS))
    assert len(set(held["tasks"])) == CALLS
    assert held["connections"] <= POOLED
    denied = set()
    while waiting := desk.reviewer.waiting(limit=PAGE).suspensions:
        for waits in waiting:
            amount = int(str(waits.items[0].tool.args["amount"]))
            denied |= {amount} if amount % 2 else set()
            desk.reviewer.decide(waits.id, waits.items[0], "deny" if amount % 2 else "approve")
    ended = play(desk, "poll", text=json.dumps(held["tasks"]))
    assert ended["ran"] == {str(amount): 1 for amount in range(CALLS) if amount not in denied}
    assert len(denied) == CALLS // 2
    for number, task in enumerate(ended["ended"]):
        assert (task["task"], task["status"]) == (held["tasks"][number], "completed")
        assert task["result"].get("isError", False) is (number in denied)
