"""Effects of the bots' tools: a line with the call, its process and its key."""

import json
import os
from pathlib import Path
from typing import Any

from launch.waits import wait_until
from sayso.runner.execution import current_call

FILE, LET_GO, HOLD, WORDS = "effects.jsonl", "let-go", "hold", "words"
HOLD_MODEL, THINKING = "hold-model", "thinking"
PATIENCE_S = 120


def leave(tool: str, **args: Any) -> str:
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
        wait_until((home / LET_GO).exists, PATIENCE_S)
    return f"{tool} done: {json.dumps(args, sort_keys=True)}"


def words() -> str:
    """Return the description of `send_money`. Tests write the file to change the tool."""
    told = Path(os.environ["BOT_HOME"]) / WORDS
    return told.read_text(encoding="utf-8") if told.exists() else "Send money to somebody."


def parse_script(text: str) -> list[list[dict[str, Any]]]:
    """Return the turns that a bot's model plays, from the JSON in its request."""
    turns: list[list[dict[str, Any]]] = json.loads(text)["turns"]
    return turns


def think(said: int) -> None:
    """Block a model that has results, so that a test can kill its worker."""
    home = Path(os.environ["BOT_HOME"])
    if said and (home / HOLD_MODEL).exists():
        (home / THINKING).touch()
        wait_until(lambda: not (home / HOLD_MODEL).exists(), PATIENCE_S)
