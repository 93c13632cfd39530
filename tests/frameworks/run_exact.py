"""Runs a bot whose model sends integers: `python -m tests.frameworks.run_exact MODULE NUMBER …`. Prints what ran.

Each number is sent once as it is and approved, and once more in an edit of a call with 7.
"""

import asyncio
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sayso.core.records.items import ItemDraft
from sayso.runner.batches import Resumption
from tests.frameworks.edge_cases.local_runs import play, print_json
from tests.sayso.runners import approve


def decide(asked: ItemDraft) -> Resumption:
    """Approve a call; one to `edit <number>` with that number instead of its own."""
    action, number = str(asked.tool.args["to"]).split()
    return approve(asked, amount=json.loads(number)) if action == "edit" else approve(asked)


async def main(module: str, numbers: list[str]) -> dict[str, Any]:
    """Return the end of the run, and what ran, as JSON."""
    with TemporaryDirectory() as folder:
        home = Path(folder) / "bots"
        home.mkdir()
        os.environ["BOT_HOME"] = str(home)
        bot = import_module(module).bot
        sent = [{"to": f"send {one}", "amount": json.loads(one)} for one in numbers]
        edits = [{"to": f"edit {one}", "amount": 7} for one in numbers]
        turns = [[{"tool": "send_money", "args": args} for args in (*sent, *edits)]]
        ended = await play(bot, decide, text=json.dumps({"turns": turns, "padding": ""}))
        file = home / "effects.jsonl"
        ran = [json.loads(line)["args"] for line in file.read_text().splitlines()] if file.exists() else []
    return {"ran": {args["to"]: json.dumps(args["amount"]) for args in ran}, **ended}


if __name__ == "__main__":
    print_json(asyncio.run(main(sys.argv[1], sys.argv[2:])))
