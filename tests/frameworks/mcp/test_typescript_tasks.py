"""The official TypeScript client with `@modelcontextprotocol/ext-tasks`, killed while its call is held."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.frameworks.mcp.desks import PATIENCE_S, PYTHON, SERVER, Desk

PROGRAM = Path(__file__).parent / "typescript" / "tasks.mjs"
PACKAGES = PROGRAM.parent / "node_modules" / ".installed"

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not PACKAGES.exists() or shutil.which("node") is None, reason="needs Node.js 20 and npm"),
]


def start(desk: Desk, reference: Path) -> subprocess.Popen[str]:
    """Start the client with the proxy behind it."""
    proxy = [PYTHON, "-m", "sayso", "mcp", "--", *SERVER]
    command = ["node", str(PROGRAM), str(reference), *proxy]
    return subprocess.Popen(command, cwd=CHECKOUT, env=desk.environ(), stdout=subprocess.PIPE, text=True)


def read_outcome(client: subprocess.Popen[str]) -> Any:
    """Return the outcome that the client printed."""
    printed, _ = client.communicate(timeout=PATIENCE_S)
    return json.loads(printed)


@pytest.mark.parametrize("action", ["approve", "deny"])
def test_typescript_client_resumes_its_task_after_a_kill(
    desk: Desk, tmp_path: Path, action: Literal["approve", "deny"]
) -> None:
    reference = tmp_path / "task.json"
    first = start(desk, reference)
    waits = desk.await_suspension()
    assert wait_until(lambda: reference.exists() and reference.stat().st_size > 0, PATIENCE_S)
    first.kill()
    first.communicate()
    assert json.loads(reference.read_text())["taskId"] == waits.id
    desk.decide(action, message="As agreed.")
    outcomes = [read_outcome(start(desk, reference)) for _ in range(2)]
    assert [outcome["status"] for outcome in outcomes] == ["completed"] * 2, outcomes
    result, again = [outcome["result"] for outcome in outcomes]
    assert result["content"] == again["content"]
    assert result.get("isError", False) is (action == "deny")
    assert len(desk.effects()) == (1 if action == "approve" else 0)
