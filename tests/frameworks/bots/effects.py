"""Effects of the bots' tools: a line with the call, its process and its key."""

import json
import os
from pathlib import Path
from typing import Any

from launch.stops import wait_until
from sayso.runner.execution import current_call

FILE, RELEASE, HOLD, DESCRIPTION = "effects.jsonl", "release", "hold", "description"
HOLD_MODEL, THINKING = "hold-model", "thinking"
PATIENCE_S = 120


def record_effect(tool: str, **args: Any) -> str:
    """Record that a tool ran. A `hold` file makes the tool wait after its effect."""
    home = Path(os.environ["BOT_HOME"])
    call = current_call()
    line = {
        "tool": tool,
        "args": args,
        "pid": os.getpid(),
        "key": call.idempotency_key if call else None,
        "attempt": call.attempt if call else None,
    }
    with (home / FILE).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    if (home / HOLD).exists():
        wait_until((home / RELEASE).exists, PATIENCE_S)
    return f"{tool} done: {json.dumps(args, sort_keys=True)}"


def describe_send_money() -> str:
    """Return the description of `send_money`. Tests write the file to change the tool."""
    file = Path(os.environ["BOT_HOME"]) / DESCRIPTION
    return file.read_text(encoding="utf-8") if file.exists() else "Send money to somebody."


def parse_script(text: str) -> list[list[dict[str, Any]]]:
    """Return the turns that a bot's model plays, from the JSON in its request."""
    turns: list[list[dict[str, Any]]] = json.loads(text)["turns"]
    return turns


def wait_before_turn(turn: int) -> None:
    """Block every turn but the first while a test holds the model, so that it can kill the worker."""
    home = Path(os.environ["BOT_HOME"])
    if turn and (home / HOLD_MODEL).exists():
        (home / THINKING).touch()
        wait_until(lambda: not (home / HOLD_MODEL).exists(), PATIENCE_S)
