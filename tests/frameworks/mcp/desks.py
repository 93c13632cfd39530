"""A running Sayso, MCP clients behind the proxy, and the server that they call."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from demo.stacks import Stack, find_ports, neutral_environ
from launch.stops import wait_until
from sayso import Client
from sayso.client.operations import Action
from sayso.wire.suspensions import SuspensionView
from service.core.settings import CHECKOUT
from tests.frameworks.kinds import MCP, find_python

PATIENCE_S = 60
PYTHON = str(find_python(MCP))
SERVER = [PYTHON, "-m", "tests.frameworks.mcp.servers"]
BY_HTTP = "--url"


@dataclass
class Desk:
    """A running Sayso, a reviewer, and the log of the server behind the proxy."""

    stack: Stack
    reviewer: Client
    home: Path

    def effects(self) -> list[dict[str, Any]]:
        """Return the server's effects in this test."""
        file = self.home / "effects.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def waiting(self) -> list[SuspensionView]:
        """Return the pending suspensions."""
        return list(self.reviewer.waiting().suspensions)

    def await_suspension(self) -> SuspensionView:
        """Wait for the only pending suspension and return it."""
        assert wait_until(lambda: len(self.waiting()) == 1, PATIENCE_S), self.waiting()
        return self.waiting()[0]

    def decide(self, action: Action, **given: Any) -> SuspensionView:
        """Decide the only pending item."""
        waits = self.await_suspension()
        self.reviewer.decide(waits.id, waits.items[0], action, **given)
        return waits

    def environ(self, **more: str) -> dict[str, str]:
        """Return the environment of a proxy and its server."""
        variables = {"SAYSO_URL": self.stack.url, "SAYSO_KEY": self.stack.agent_key, "BOT_HOME": str(self.home)}
        return {**neutral_environ(), **variables, "PYTHONPATH": str(CHECKOUT), **more}


@dataclass
class McpClient:
    """An MCP client in its own process, connected to the proxy."""

    child: subprocess.Popen[str]
    lines: "Queue[dict[str, Any]]" = field(default_factory=Queue)
    progress: list[str] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.lines.put(json.loads(line))

    def request(self, action: str, **what: Any) -> int:
        """Send a request to the client and return its number."""
        self.number += 1
        self.send({"id": self.number, "action": action, **what})
        return self.number

    def send(self, request: dict[str, Any]) -> None:
        """Send the client a line."""
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()

    def pay(self, to: str, amount: int = 7, action: str = "call", **more: Any) -> int:
        """Request a transfer."""
        return self.request(action, tool="send_money", args={"to": to, "amount": amount}, **more)

    def read_result(self, number: int) -> Any:
        """Return the result of a request. Earlier progress is collected."""
        while True:
            line = self.lines.get(timeout=PATIENCE_S)
            if "progress" in line:
                self.progress.append(line["progress"])
            elif line["id"] == number:
                return line.get("result", line)

    def read_error(self, number: int) -> str:
        """Return the error text for the model."""
        result = self.read_result(number)
        assert result["is_error"] is True, result
        return str(result["content"][0]["text"])


@contextmanager
def open_client(
    desk: Desk, *options: str, mode: str = "auto", server: list[str] | None = None, **environ: str
) -> Iterator[McpClient]:
    """Connect a client to a proxy with these options in front of this server."""
    behind = ["--", *SERVER] if server is None else server
    command = [PYTHON, "-m", "tests.frameworks.mcp.clients", mode, PYTHON, "-m", "sayso", "mcp", *options, *behind]
    child = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=desk.environ(**environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        client = McpClient(child)
        client.read_result(0)
        yield client
    finally:
        child.kill()
        child.wait()


@contextmanager
def running_http_server(desk: Desk) -> Iterator[list[str]]:
    """Run the server at a port."""
    port = find_ports()
    child = subprocess.Popen([*SERVER, str(port)], cwd=CHECKOUT, env=desk.environ())
    try:
        probe = Client(f"http://127.0.0.1:{port}", "-", patience_s=PATIENCE_S)
        with probe, pytest.raises(Exception, match="is not a Sayso desk"):
            probe.waiting()
        yield [BY_HTTP, f"http://127.0.0.1:{port}/mcp"]
    finally:
        child.kill()
        child.wait()
