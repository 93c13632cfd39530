"""The shipped rules in front of a corpus of shell commands, and of the other tools of coding agents."""

import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from sayso.adapters.hooks import rules_text
from sayso.adapters.hooks.judging import HookOptions
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.policy.files.packages import read_policy
from sayso.testing import InProcessDesk
from tests.sayso.adapters.hooks.payloads import PROJECT, ask, claude, decision

CORPUS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())
AT_ONCE = HookOptions(wait_s=0)
NUMBERS = count()


@pytest.fixture(scope="module")
def policy() -> Policy:
    return read_policy(rules_text())


@pytest.fixture
def ruled(policy: Policy) -> InProcessDesk:
    return InProcessDesk(policy)


def is_run(desk: InProcessDesk, command: str, **more: Any) -> bool:
    """Whether the hook lets the agent run a call that nobody has decided."""
    return decision(ask(desk, claude(command, f"toolu_{next(NUMBERS)}", **more), options=AT_ONCE))[0] == "allow"


def test_rules_have_no_findings(policy: Policy) -> None:
    assert find_findings(policy, Known()) == []


def test_no_harmful_command_runs_unasked_and_few_harmless_ones_are_asked(ruled: InProcessDesk) -> None:
    harmless, harmful = CORPUS["harmless"], CORPUS["harmful"]
    assert len({*harmless, *harmful}) == len(harmless) + len(harmful) >= 200
    run = [command for command in harmful if is_run(ruled, command)]
    asked = [command for command in harmless if not is_run(ruled, command)]
    figures = f"{len(run)} of {len(harmful)} harmful run, {len(asked)} of {len(harmless)} harmless asked: {asked}"
    print(figures, file=sys.stderr)
    assert run == [], figures
    assert len(asked) <= 0.05 * len(harmless), figures


@pytest.mark.parametrize(
    "place",
    [
        {"cwd": "/etc"},
        {"cwd": f"{PROJECT}-other"},
        {"cwd": f"{PROJECT}/.git/hooks"},
        {"tool_input": {"command": "ls", "dangerouslyDisableSandbox": True}},
        {"tool_name": "Bash_"},
    ],
    ids=str,
)
def test_harmless_command_is_asked_elsewhere(
    ruled: InProcessDesk, place: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", PROJECT)
    assert is_run(ruled, "ls", cwd=f"{PROJECT}/web")
    assert not is_run(ruled, "ls", **place)


@pytest.mark.parametrize(
    ("tool", "args", "runs"),
    [
        ("Read", {"file_path": f"{PROJECT}/src/a.ts"}, True),
        ("Read", {"file_path": f"{PROJECT}/.env"}, False),
        ("Read", {"file_path": f"{PROJECT}/../.ssh/id_rsa"}, False),
        ("Read", {"file_path": "/etc/passwd"}, False),
        ("Read", {"file_path": "src/a.ts"}, False),
        ("Read", {"filePath": f"{PROJECT}/src/a.ts"}, True),
        ("Read", {"target_file": "/etc/passwd"}, False),
        ("Edit", {"filePath": "/etc/passwd"}, False),
        ("Grep", {"pattern": "/api/", "path": PROJECT}, True),
        ("Grep", {"pattern": "x", "path": "/"}, False),
        ("Grep", {"pattern": "x"}, True),
        ("Glob", {"pattern": "src/**/*.ts"}, True),
        ("Glob", {"pattern": "/etc/*"}, False),
        ("Glob", {"pattern": "../*"}, False),
        ("Edit", {"file_path": f"{PROJECT}/src/a.ts", "old_string": "a", "new_string": "b"}, True),
        ("Write", {"file_path": f"{PROJECT}/src/a.ts", "content": "x"}, True),
        ("Write", {"file_path": f"{PROJECT}/.claude/settings.json", "content": "{}"}, False),
        ("Write", {"file_path": f"{PROJECT}/.git/hooks/pre-commit", "content": "x"}, False),
        ("Write", {"file_path": f"{PROJECT}/../x", "content": "x"}, False),
        ("Write", {"file_path": "/home/ada/.bashrc", "content": "x"}, False),
        ("Write", {"content": "x"}, False),
        ("NotebookEdit", {"notebook_path": f"{PROJECT}/a.ipynb", "new_source": "x"}, True),
        ("TodoWrite", {"todos": []}, True),
        ("WebFetch", {"url": "https://example.com", "prompt": "x"}, False),
        ("mcp__bank__pay", {"to": "ann"}, False),
    ],
    ids=str,
)
def test_other_tools_stay_in_the_project(ruled: InProcessDesk, tool: str, args: dict[str, Any], runs: bool) -> None:
    assert is_run(ruled, "", tool_name=tool, tool_input=args) is runs
