"""The Go server: built with Go's own client for modules, started, killed and started again."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from demo.stacks import find_ports, neutral_environ
from launch.stops import wait_until

SOURCE = Path(__file__).parent
PATIENCE_S = 60
_NO_GO = "Go is not installed, so no server of trpc-agent-go runs"
_NO_MODULES = "Go cannot get trpc-agent-go, so no server of it runs"
_UNREACHED = ("://", "dial tcp", "missing go.sum entry", "module lookup disabled")
_ADDRESSES = re.compile(r"\S+://\S+")


def build_server(folder: Path) -> Path:
    """Build the server in a folder, or skip the test with the reason.

    Sums that go.sum lacks come from the checksum database. With `GOWORK`, Go takes the modules that it names.
    """
    if shutil.which("go") is None:
        pytest.skip(_NO_GO)
    environ = neutral_environ()
    if os.environ.get("GOWORK", "off") == "off":
        shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        source, options = folder / "source", ["-mod=mod"]
    else:
        source, options = SOURCE, []
    built = _go(source, environ, "build", *options, "-o", str(folder / "server"), ".")
    unreached = [line for line in built.stderr.splitlines() if any(sign in line for sign in _UNREACHED)]
    if built.returncode != 0 and unreached:
        pytest.skip(f"{_NO_MODULES}: {_ADDRESSES.sub('…', unreached[-1])[-300:]}")
    assert built.returncode == 0, built.stderr
    return folder / "server"


def _go(source: Path, environ: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["go", *command], cwd=source, env=environ, capture_output=True, text=True, check=False)


@dataclass
class GoServer:
    """A process of the server, whose folder keeps its checkpoints and effects."""

    binary: Path
    home: Path
    port: int
    child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [str(self.binary), "-address", f"127.0.0.1:{self.port}", "-home", str(self.home)]
        with (self.home / "server.log").open("ab") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log)
        assert wait_until(self._answers, PATIENCE_S), (self.home / "server.log").read_text()

    def kill(self) -> None:
        """Kill -9 the server."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()

    def _answers(self) -> bool:
        try:
            httpx.get(self.url)
        except httpx.TransportError:
            return False
        return True


@contextmanager
def running_server(binary: Path, home: Path) -> Iterator[GoServer]:
    """Run a server for the length of the block."""
    server = GoServer(binary, home, find_ports())
    server.start()
    try:
        yield server
    finally:
        server.kill()
