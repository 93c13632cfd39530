"""Starts a run in its own process and ends: `python -m tests.frameworks.legs`."""

import asyncio
import importlib
import json
import os
import sys

from sayso.adapters.starting import start
from sayso.client import AsyncClient
from sayso.client.responses import Suspension
from sayso.runner.protocol import FrameworkAgent


def main() -> None:
    """Print the suspension and the process id."""
    module, text, url, key = sys.argv[1:]
    text = sys.stdin.read() if text == "-" else text
    agent = importlib.import_module(module).bot
    waits = asyncio.run(begin(agent, text, url, key))
    print(json.dumps({"run_id": waits.run.id, "suspension_id": waits.id, "pid": os.getpid()}))


async def begin(agent: FrameworkAgent, text: str, url: str, key: str) -> Suspension:
    """Start a run that suspends."""
    async with AsyncClient(url, key) as client:
        waits = await start(agent, text, client, title="Conformance")
    assert isinstance(waits, Suspension), waits
    return waits


if __name__ == "__main__":
    main()
