"""Every block of the tutorial is used as it stands: files are written, commands run, and the agent does its job."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from demo.stacks import neutral_environ
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, quick_stack

PAGE = (CHECKOUT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
FILES = {name[1]: text for _, text in BLOCKS if (name := re.match(r"# ([\w.]+)\n", text))}
COMMANDS = [text for kind, text in BLOCKS if kind == "sh" and text not in FILES.values()]
NAMELESS = """
import asyncio

from shop import agent

from sayso.runner.local import HeadlessProvider, run_agent
from sayso.core.policy.engine import Policy

end = asyncio.run(run_agent(agent, "Refund it.", policy=Policy(default="allow"), provider=HeadlessProvider()))
print(end.status, end.error)
"""
STARTS = '. ./environ.sh\nmake -C "$SAYSO" up\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The reader's folder, with every file of the page."""
    made = tmp_path / "shop"
    made.mkdir()
    for name, text in FILES.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def run(folder: Path, script: str, **environ: str) -> str:
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        cwd=folder,
        env={**neutral_environ(), "SAYSO": str(CHECKOUT), "PYTHON": sys.executable, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def settings_of(folder: Path) -> Mapping[str, str]:
    """What `make up` gets to know from the reader's file."""
    listed = run(folder, ". ./environ.sh\nenv -0").split("\0")
    known = dict(line.partition("=")[::2] for line in listed if "=" in line)
    return {name: value for name, value in known.items() if name.startswith("SAYSO_") or name == "PYTHONPATH"}


def test_tutorial_blocks_are_files_or_executed_commands() -> None:
    other = [text for kind, text in BLOCKS if text not in FILES.values() and kind != "sh"]
    assert other == [STARTS]
    assert list(FILES) == [
        "environ.sh", "shop_tools.py", "shop_model.py", "shop.py", "policy.yaml", "test_shop.py", "ask.py", "decide.py",
        "follow.py",
    ]  # fmt: skip
    assert len(COMMANDS) == 3


def test_tutorial_shop_tests_pass(folder: Path) -> None:
    assert "Ran 4 tests" in run(folder, COMMANDS[0])


def test_tutorial_agent_pays_the_approved_amount(folder: Path, tmp_path: Path) -> None:
    with quick_stack(tmp_path / "home", **settings_of(folder)) as stack:
        output = run(folder, COMMANDS[1], SAYSO_URL=stack.url)
        described = run(folder, f". ./environ.sh\n{COMMANDS[2]}")
    assert "Refunds over 50 need a person" in output
    assert "completed {'text': 'Refunded 200.0.'}" in output
    (paid,) = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
    assert (paid["order"], paid["amount"]) == ("A-2", 200.0)
    assert described == "{'model': 'qwen3', 'provider': '127.0.0.1'}\n"


def test_tutorial_run_fails_without_an_order(folder: Path) -> None:
    (folder / "play.py").write_text(NAMELESS)
    said = run(folder, '. ./environ.sh\n"$python" play.py')
    assert "failed" in said
    assert "The request names no order" in said
