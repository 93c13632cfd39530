"""Starts a run in its own process and ends: `python -m tests.frameworks.start_run`."""

import asyncio
import importlib
import json
import os
import sys

from sayso.adapters.starting import start
from sayso.client import AsyncClient
from sayso.runner.protocol import FrameworkAgent
from sayso.wire.suspensions import SuspensionView


def main() -> None:
    """Print the suspension and the process id."""
    module, text, url, key = sys.argv[1:]
    text = sys.stdin.read() if text == "-" else text
    agent = importlib.import_module(module).bot
    suspension = asyncio.run(begin(agent, text, url, key))
    print(json.dumps({"run_id": suspension.run.id, "suspension_id": suspension.id, "pid": os.getpid()}))


async def begin(agent: FrameworkAgent, text: str, url: str, key: str) -> SuspensionView:
    """Start a run that suspends."""
    async with AsyncClient(url, key) as client:
        suspension = await start(agent, text, client, title="Conformance")
    assert isinstance(suspension, SuspensionView), suspension
    return suspension


if __name__ == "__main__":
    main()
