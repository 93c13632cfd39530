"""`sayso hook` as a program: whatever goes wrong, the agent reads that the call is blocked."""

import json
import subprocess
from pathlib import Path

import pytest

from service.core.settings import CHECKOUT
from tests.sayso.adapters.hooks.payloads import claude
from tests.sayso.cli.programs import Programs

AWAY = {"SAYSO_URL": "http://127.0.0.1:9", "SAYSO_KEY": "key"}


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PYTHONPATH": str(CHECKOUT), **AWAY, **more}


@pytest.mark.parametrize(
    ("typed", "more", "reason"),
    [
        ("", {}, "not JSON"),
        ('{"hook_event_name": "Stop"}', {}, "none that Sayso knows of Claude Code"),
        (" " * 1_000_001, {}, "make smaller calls"),
        (json.dumps(claude()), {"SAYSO_URL": "nowhere"}, "is not the URL of a desk"),
        (json.dumps(claude()), {"SAYSO_KEY": "two words"}, "never have"),
    ],
    ids=["empty", "event", "large", "address", "key"],
)
def test_input_or_settings_that_are_wrong_block_the_call(
    programs: Programs, tmp_path: Path, typed: str, more: dict[str, str], reason: str
) -> None:
    done = programs.run(["hook", "claude-code", "--fail", "open"], environ(tmp_path, **more), typed)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr


@pytest.mark.parametrize(("fail", "decision"), [("closed", "deny"), ("ask", "ask"), ("open", None)])
def test_desk_that_is_away_has_the_answer_of_its_option(
    programs: Programs, tmp_path: Path, fail: str, decision: str | None
) -> None:
    done = programs.run(["hook", "claude-code", "--fail", fail], environ(tmp_path), json.dumps(claude()))
    assert done.returncode == 0
    output = json.loads(done.stdout).get("hookSpecificOutput", {})
    assert output.get("permissionDecision") == decision
    assert "because this hook" in done.stderr


def test_wrong_option_blocks_the_call(programs: Programs, tmp_path: Path) -> None:
    assert programs.run(["hook", "claude-code", "--fail", "perhaps"], environ(tmp_path)).returncode == 2


def test_program_that_is_missing_blocks_the_call(programs: Programs, tmp_path: Path) -> None:
    """A shell's own status for a missing program would let the call run."""
    done = programs.run(["hook", "install", "claude-code", "--scope", "user"], environ(tmp_path))
    assert done.returncode == 0, done.stderr
    settings = json.loads((tmp_path / ".claude" / "settings.json").read_text())
    command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    shell = subprocess.run(["/bin/sh", "-c", command], env={"PATH": str(tmp_path)}, capture_output=True, check=False)
    assert shell.returncode == 2
    again = programs.run(["hook", "install", "claude-code", "--scope", "user"], environ(tmp_path))
    assert "nothing to change" in again.stdout
    gone = programs.run(["hook", "install", "claude-code", "--scope", "user", "--remove"], environ(tmp_path))
    assert "changed" in gone.stdout
    assert "sayso" not in (tmp_path / ".claude" / "settings.json").read_text()


def test_install_with_defer_is_for_agents_whose_runs_can_end(programs: Programs, tmp_path: Path) -> None:
    install = ["hook", "install", "claude-code", "--scope", "user", "--wait", "0", "--defer"]
    done = programs.run(install, environ(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "sayso hook claude-code --wait 0 --defer || exit 2" in (tmp_path / ".claude" / "settings.json").read_text()
    refused = programs.run(["hook", "install", "codex", "--scope", "user", "--defer"], environ(tmp_path))
    assert "Install the hook without --defer" in refused.stderr
    assert not (tmp_path / ".codex").exists()


def test_install_names_the_agents_that_it_knows(programs: Programs, tmp_path: Path) -> None:
    done = programs.run(["hook", "install", "emacs"], environ(tmp_path))
    assert done.returncode == 1
    assert "claude-code" in done.stderr
