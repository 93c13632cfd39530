"""Restate beside Sayso: a handler waits for an awakeable, and the driver resolves it.

Restate runs with its defaults but for telemetry. Granian serves the handler, as it is faster than Hypercorn. Settings
of the environment apply, such as RESTATE_DEFAULT_NUM_PARTITIONS. Its log is synced before a request is answered, as
Valkey's is with `appendfsync always`. With `everysec` here, Restate's log is not synced: it knows nothing in between.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.clients import STAMPS, Clients, Stamps
from benchmarks.peers import SuspendedCall, arguments
from benchmarks.peers.processes import Running, starting, wait_ready
from service.core.settings import CHECKOUT

_HERE = Path(__file__).parent
_PYTHON = CHECKOUT / ".venv-restate" / "bin" / "python"
_ACCEPTED = (200, 202)
_TIMEOUT_S = 60


class Restate:
    """Restate over HTTP."""

    def __init__(self, clients: Clients, stamps: Stamps) -> None:
        self._clients = clients
        self._stamps = stamps

    async def suspend(self, name: str, size: int = 300) -> SuspendedCall:
        """Start a handler and wait until it has reported its awakeable."""
        awakeable = self._stamps.expect_id(name)
        await self._clients.call("POST", "/bench/ask/send", {"name": name, "args": arguments(name, size)}, _ACCEPTED)
        return SuspendedCall(name, f"/restate/awakeables/{await awakeable}/resolve")

    async def decide(self, suspended: SuspendedCall) -> None:
        """Resolve the awakeable."""
        await self._clients.call("POST", suspended.path, "approve", _ACCEPTED)


def find_missing() -> str:
    """Return why Restate cannot be measured here and what to do; empty if it can."""
    if shutil.which("npm") is None:
        return "Restate is skipped: install Node.js with npm, then run `make bench` again."
    if not (_PYTHON.exists() and _binaries()):
        return "Restate is skipped: `make bench` installs it, or `make .venv-restate/.installed`."
    return ""


@contextmanager
def running_restate(home: Path, port: int, stamps: str, fsync: str) -> Iterator[Running]:
    """Run Restate and its handler for the duration of the block; they use four ports from `port` on."""
    environ = {
        STAMPS: stamps,
        "RESTATE_BASE_DIR": str(home),
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_INGRESS__BIND_PORT": str(port),
        "RESTATE_ADMIN__BIND_PORT": str(port + 1),
        "RESTATE_BIND_PORT": str(port + 2),
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LOG_FILTER": "error,octocrab=off",
        "RESTATE_LOG_SERVER__ROCKSDB_DISABLE_WAL_FSYNC": json.dumps(fsync != "always"),
    }
    with starting(environ, _HERE) as start:
        server = start(str(_binaries()[0]), "--no-logo")
        handler = start(str(_PYTHON), "handler.py", str(port + 3))
        wait_ready(lambda: _register(port + 1, port + 3))
        yield Running(port, "", {"service": server, "worker": handler})


def _binaries() -> list[Path]:
    return [*_HERE.glob("node_modules/@restatedev/restate-server-*/bin/restate-server")]


def _register(admin: int, handler: int) -> bool:
    try:
        body = {"uri": f"http://127.0.0.1:{handler}"}
        return httpx.post(f"http://127.0.0.1:{admin}/deployments", json=body, timeout=_TIMEOUT_S).is_success
    except httpx.TransportError:
        return False
