"""Installation of hooks: an entry in the agent's settings file, beside all that stands there."""

import json
import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from sayso.core.canonical_json import parse_json
from sayso.errors import InvalidInput, SaysoError

MARGIN_S = 60
"""The seconds by which the agent's limit exceeds the wait for a person: retries and the start of the program."""


class Scope(StrEnum):
    """Whose settings hold the hook."""

    project = "project"
    user = "user"


class Place(NamedTuple):
    """Where an agent has its settings, the list that holds hooks of tools, and how an entry there is written."""

    file: str
    event: str
    write: Callable[[str, int], dict[str, Any]]
    base: Mapping[str, Any] = {}
    user_file: str = ""
    """The file in a user's home, where it has another name."""


def _write_matched(command: str, limit_s: int) -> dict[str, Any]:
    return {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": limit_s}]}


def _write_cursor(command: str, limit_s: int) -> dict[str, Any]:
    return {"command": command, "timeout": limit_s, "failClosed": True}


_PLUGIN = "opencode"
"""The agent that reads a plugin instead of settings."""

PLACES = {
    "claude-code": Place(".claude/settings.json", "PreToolUse", _write_matched),
    "codex": Place(".codex/hooks.json", "PreToolUse", _write_matched),
    "cursor": Place(".cursor/hooks.json", "preToolUse", _write_cursor, {"version": 1}),
    _PLUGIN: Place(".opencode/plugins/sayso.js", "", _write_matched, user_file=".config/opencode/plugins/sayso.js"),
}
"""The agents with settings that Sayso writes."""


def settings_path(agent: str, scope: Scope, project: Path) -> Path:
    """Return the agent's settings file, with links followed."""
    place = PLACES[agent]
    own = Path.home() / (place.user_file or place.file)
    return (own if scope is Scope.user else project / place.file).resolve()


def install(agent: str, file: Path, options: str, wait_s: float) -> bool:
    """Write the agent's hook into its settings file, and return whether that changed it."""
    # Without this program the shell's own status would let the call run.
    command = f"sayso hook {agent} --wait {wait_s:g}{options} || exit 2"
    if agent == _PLUGIN:
        return _rewrite_plugin(file, _read_plugin().replace('"sayso hook opencode"', json.dumps(command)))
    return _rewrite(agent, file, PLACES[agent].write(command, int(wait_s) + MARGIN_S))


def remove(agent: str, file: Path) -> bool:
    """Remove the agent's hook from its settings file, and return whether it was there."""
    if not file.exists():
        return False
    return _rewrite_plugin(file, "") if agent == _PLUGIN else _rewrite(agent, file, None)


def _read_plugin() -> str:
    return (files(__package__) / "opencode.js").read_text(encoding="utf-8")


def _rewrite_plugin(file: Path, text: str) -> bool:
    """Write the plugin, or remove it without a text, unless the file is somebody else's."""
    before = file.read_bytes() if file.exists() else b""
    if before and before.partition(b"\n")[0] != _read_plugin().partition("\n")[0].encode():
        raise _describe_broken(file, "Sayso did not write it")
    if before == text.encode():
        return False
    _write(file, text) if text else file.unlink()
    return True


def _rewrite(agent: str, file: Path, entry: dict[str, Any] | None) -> bool:
    place = PLACES[agent]
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else None
        settings = parse_json(before) if before is not None else dict(place.base)
    except (OSError, UnicodeDecodeError, SaysoError) as error:
        raise _describe_broken(file, str(error)) from error
    if not isinstance(settings, dict):
        raise _describe_broken(file, "it is not a JSON object")
    hooks: Any = settings.get("hooks", {})
    entries = hooks.get(place.event, []) if isinstance(hooks, dict) else None
    if not isinstance(entries, list):
        raise _describe_broken(file, f"its hooks have no list {place.event}")
    own = [old for old in entries if _is_own(agent, old)]
    if own == ([entry] if entry is not None else []):
        return False
    kept = [old for old in entries if old not in own] + ([entry] if entry is not None else [])
    hooks = {name: listed for name, listed in {**hooks, place.event: kept}.items() if listed or name != place.event}
    settings = {name: value for name, value in {**settings, "hooks": hooks}.items() if value or name != "hooks"}
    _write(file, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    return True


def _is_own(agent: str, entry: Any) -> bool:
    """Whether an entry runs this agent's hook and nothing else."""
    inner = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    commands = [hook.get("command") for hook in inner if isinstance(hook, dict)] if isinstance(inner, list) else []
    return bool(commands) and all(str(command).startswith(f"sayso hook {agent} ") for command in commands)


def _write(file: Path, text: str) -> None:
    """Replace the file at once, so that a program that is killed leaves it whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.write_text(text, encoding="utf-8")
    if file.exists():
        fresh.chmod(file.stat().st_mode & 0o777)
    fresh.replace(file)


def _describe_broken(file: Path, fault: str) -> InvalidInput:
    return InvalidInput(f"{file} is left as it is, because it cannot be read: {fault}. Correct it and install again.")
