"""Tests of the SDK alone, with its command line: a gated function is decided by a command and runs."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.stacks import Stack, neutral_environ, running_stack
from launch.stops import wait_until
from sayso import Client
from service.core.settings import CHECKOUT
from tests.frameworks.kinds import SDK, find_python

PYTHON = str(find_python(SDK))
RULES = CHECKOUT / "tests" / "frameworks" / "policy.yaml"
GATED = """
import sys
from sayso import gate

@gate(key="pay-{to}")
def send_money(to: str, amount: int) -> str:
    return f"sent {amount} to {to}"

print(send_money("ann", int(sys.argv[1])))
"""
IN_PROCESS = """
from sayso import gate
from sayso.testing import InProcessDesk

desk = InProcessDesk()
desk.reviewer.approves("send_money")

@gate(client=desk.client())
def send_money(to: str, amount: int) -> str:
    return f"sent {amount} to {to}"

print(send_money("ann", 7))
"""
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running Sayso."""
    with running_stack(tmp_path_factory.mktemp("sdk"), {"SAYSO_POLICY": str(RULES), "SAYSO_WORKERS": "1"}) as running:
        yield running


def sdk(*command: str, home: Path, **environ: str) -> subprocess.Popen[str]:
    """Start a program with the SDK alone."""
    environ = {**neutral_environ(), "HOME": str(home), "XDG_CONFIG_HOME": str(home), **environ}
    return subprocess.Popen([PYTHON, *command], cwd=CHECKOUT, env=environ, stdout=subprocess.PIPE, text=True)


def test_gated_function_runs_once_a_command_approved_it(stack: Stack, tmp_path: Path) -> None:
    desk = {"SAYSO_URL": stack.url}
    with Client(stack.url, "-") as reviewer:
        reviewer.sign_in("admin", stack.admin_password)
        key = reviewer.create_key("admin", "reviewer").key
        assert key is not None
        assert stack.agent_key is not None
        program = sdk("-c", GATED, "7", home=tmp_path, SAYSO_KEY=stack.agent_key, **desk)
        assert wait_until(lambda: bool(reviewer.waiting().suspensions), 60)
    listing = sdk("-m", "sayso", "inbox", "--json", home=tmp_path, SAYSO_KEY=key, **desk).communicate()[0]
    (waiting,) = json.loads(listing)
    approval = sdk("-m", "sayso", "approve", waiting["id"], "--yes", home=tmp_path, SAYSO_KEY=key, **desk)
    assert approval.wait(60) == 0
    assert program.communicate(timeout=60)[0] == "sent 7 to ann\n"


def test_rules_are_checked_without_a_server(tmp_path: Path) -> None:
    check = sdk("-m", "sayso", "policy", "check", str(RULES), home=tmp_path)
    check.communicate(timeout=60)
    assert check.returncode == 0


def test_gated_function_runs_in_a_test_without_a_server(tmp_path: Path) -> None:
    assert sdk("-c", IN_PROCESS, home=tmp_path).communicate(timeout=60)[0] == "sent 7 to ann\n"
