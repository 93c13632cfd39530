"""A complete Sayso in a framework's environment, and runs that other processes start."""

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from redis import Redis

from demo.clients import Client
from demo.stacks import Stack, neutral_environ, running_stack
from launch.stops import wait_until
from service.core.settings import CHECKOUT, socket_path, store_url_at
from tests.frameworks.bots.effects import FILE
from tests.frameworks.kinds import Kind

PATIENCE_S = 120
_STRICT = "tests.frameworks.bots.strict"
_QUICK = {"SAYSO_LEASE_S": "2", "SAYSO_DRAIN_WINDOW_S": "2", "SAYSO_WORKERS": "2"}


@dataclass(frozen=True)
class Waiting:
    """A suspended run, and the ended process that started it."""

    run_id: str
    suspension_id: str
    pid: int


@dataclass(frozen=True)
class Installation:
    """A running Sayso whose workers run the bot."""

    kind: Kind
    stack: Stack
    home: Path

    @property
    def store(self) -> Redis:
        """A connection to its store."""
        return Redis.from_url(store_url_at(socket_path(self.stack.home)))

    def suspend(self, *turns: list[dict[str, Any]], padding: str = "") -> Waiting:
        """Start a run in its own process, which ends after the suspension."""
        script = write_script(*turns, padding=padding)
        given = [self.kind.module, "-", self.stack.url, self.stack.agent_key]
        waiting = Waiting(**json.loads(self.run("tests.frameworks.start_run", *given, text=script)))
        assert not Path(f"/proc/{waiting.pid}").exists()
        return waiting

    def run(self, module: str, *given: str, text: str = "") -> str:
        """Run a program in the framework's environment and return its output."""
        done = subprocess.run(
            [self.kind.python, "-m", module, *given],
            cwd=CHECKOUT,
            env={**neutral_environ(), "BOT_HOME": str(self.home)},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def effects(self) -> list[dict[str, Any]]:
        """Return the effects of the bot's tools in this test."""
        file = self.home / FILE
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def clear(self) -> None:
        """Remove all effects, holds and changes of tools."""
        for file in self.home.iterdir():
            file.unlink()

    def worker_pids(self) -> set[int]:
        """Return the process ids of the workers, without their forks."""
        return {one.pid for one in self.stack.programs() if one.name.startswith("worker") and one.pid}

    async def find_suspension(self, suspension_id: str) -> dict[str, Any]:
        """Return a suspension as the agent sees it."""
        headers = {"Authorization": f"Bearer {self.stack.agent_key}"}
        async with httpx.AsyncClient(base_url=self.stack.url, headers=headers) as http:
            found: dict[str, Any] = (await http.get(f"/api/v1/suspensions/{suspension_id}")).json()
            return found

    @asynccontextmanager
    async def people(self) -> AsyncIterator[tuple[Client, Client]]:
        """Yield a client for the agent and one for a reviewer."""
        async with httpx.AsyncClient(base_url=self.stack.url) as http:
            agent = Client(http, self.stack.agent_key)
            await agent.await_agent("bot")
            yield agent, await Client(http).sign_in("admin", self.stack.admin_password)


@contextmanager
def running_installation(kind: Kind, home: Path) -> Iterator[Installation]:
    """Run a complete Sayso in the framework's environment within the block."""
    bots = home / "bots"
    bots.mkdir()
    environ = {
        **_QUICK,
        "SAYSO_AGENTS": ",".join((f"{kind.module}:bot", f"{_STRICT}:degrading", f"{_STRICT}:failing")),
        "SAYSO_POLICY": str(CHECKOUT / "tests" / "frameworks" / "policy.yaml"),
        "SAYSO_MODEL_URL": "http://127.0.0.1:9/v1",
        "BOT_HOME": str(bots),
        "BOT_MODULE": kind.module,
    }
    with running_stack(home / "home", environ, python=str(kind.python)) as stack:
        yield Installation(kind, stack, bots)


def write_script(*turns: list[dict[str, Any]], padding: str = "") -> str:
    """Return a request for a bot: the turns that its model plays."""
    return json.dumps({"turns": turns, "padding": padding})


def await_effects(installation: Installation, count: int) -> list[dict[str, Any]]:
    """Return the effects once there are `count`."""
    assert wait_until(lambda: len(installation.effects()) >= count, PATIENCE_S), installation.effects()
    return installation.effects()
