"""Begin a run in a process of its own, as an agent's own program does, and end: `python -m tests.frameworks.legs`."""

import asyncio
import importlib
import json
import os
import sys

from sayso.adapters.starts import Sayso, Suspended, start


def main() -> None:
    """Print where the run waits, and in which process it was begun."""
    module, text, url, key = sys.argv[1:]
    text = sys.stdin.read() if text == "-" else text
    agent = importlib.import_module(module).bot
    waits = asyncio.run(start(agent, text, Sayso(url, key), title="Conformance"))
    assert isinstance(waits, Suspended), waits
    print(json.dumps({"run_id": waits.run_id, "suspension_id": waits.suspension_id, "pid": os.getpid()}))


if __name__ == "__main__":
    main()
