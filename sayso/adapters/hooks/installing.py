"""Installation of hooks: an entry in the agent's settings file, beside all that stands there."""

import json
import os
from collections.abc import Callable, Mapping
from enum import StrEnum
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
    """Where an agent has its settings file, the list that holds hooks of tools, and how an entry there is written."""

    file: str
    event: str
    write: Callable[[str, int], dict[str, Any]]
    base: Mapping[str, Any] = {}


def _write_matched(command: str, limit_s: int) -> dict[str, Any]:
    return {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": limit_s}]}


PLACES = {"claude-code": Place(".claude/settings.json", "PreToolUse", _write_matched)}
"""The agents with a settings file that Sayso writes."""


def settings_path(agent: str, scope: Scope, project: Path) -> Path:
    """Return the agent's settings file, with links followed."""
    home = Path.home() if scope is Scope.user else project
    return (home / PLACES[agent].file).resolve()


def install(agent: str, file: Path, options: str, wait_s: float) -> bool:
    """Write the agent's hook into its settings file, and return whether that changed it."""
    place = PLACES[agent]
    # Without this program the shell's own status would let the call run.
    command = f"sayso hook {agent} --wait {wait_s:g}{options} || exit 2"
    return _rewrite(agent, file, place.write(command, int(wait_s) + MARGIN_S))


def remove(agent: str, file: Path) -> bool:
    """Remove the agent's hook from its settings file, and return whether it was there."""
    return file.exists() and _rewrite(agent, file, None)


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
    commands = [one.get("command") for one in inner if isinstance(one, dict)] if isinstance(inner, list) else []
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
