"""Two machines in network namespaces: one of the store, and one of the programs, which reaches it and is reached."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.journeys.stacks import kill_process

STORE, REPLICA, SPARE = "10.0.1.2", "10.0.1.3", "10.0.1.4"
SERVICES = ("10.0.0.11", "10.0.0.12")


@dataclass(frozen=True)
class Machine:
    """A network namespace, or this machine, and the environment of its commands."""

    namespace: str
    environ: Mapping[str, str]

    def command(self, *command: str | Path) -> list[str]:
        return [*(("ip", "netns", "exec", self.namespace) if self.namespace else ()), *map(str, command)]

    def start(self, *command: str | Path, cwd: Path, **environ: str) -> "subprocess.Popen[bytes]":
        """Start a program as a child. It prints to the test's own output."""
        known = {**self.environ, **environ}
        return subprocess.Popen(self.command(*command), cwd=cwd, env=known)

    def run(self, script: str, cwd: Path) -> str:
        """Run a script of Bash; return what it printed. Fails the test where it fails."""
        command = self.command("bash", "-c", f"set -euo pipefail\n{script}")
        done = subprocess.run(
            command, cwd=cwd, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout


@dataclass(frozen=True)
class Site:
    """The machines of the store, of the programs and of their callers, and the address that callers reach."""

    store: Machine
    programs: Machine
    callers: Machine
    address: str


@contextmanager
def running_site(environ: Mapping[str, str]) -> Iterator[Site]:
    """Join two network namespaces, and the second with this machine; skips the test where that is not permitted."""
    if shutil.which("ip") is None:
        pytest.skip("this machine has no `ip` to make network namespaces")
    own, number = os.getpid(), os.getpid() % 250
    store, programs = f"sayso-{own}-store", f"sayso-{own}-programs"
    caller, address = f"198.18.{number}.1", f"198.18.{number}.2"
    with ExitStack() as made:
        for name in (store, programs):
            done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"network namespaces are not permitted here: {done.stderr.strip()}")
            made.callback(_delete, name)
        _join(f"st{own}", (store, f"{STORE}/24", f"{REPLICA}/24", f"{SPARE}/24"), (programs, "10.0.1.1/24"))
        _join(f"pr{own}", (programs, f"{address}/30", *(f"{service}/32" for service in SERVICES)), ("", f"{caller}/30"))
        yield Site(Machine(store, environ), Machine(programs, environ), Machine("", environ), address)


def _delete(namespace: str) -> None:
    """Delete a namespace with all processes in it: programs that others had started, too."""
    listed = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    for pid in map(int, listed.stdout.split()):
        kill_process(pid)
    subprocess.run(["ip", "netns", "delete", namespace], check=True)


def _join(name: str, near: tuple[str, ...], far: tuple[str, ...]) -> None:
    """Make a cable between two namespaces, each given with the addresses of its end."""
    ends = tuple(zip((f"{name}a", f"{name}b"), (near, far), strict=True))
    _ip("", "link", "add", ends[0][0], "type", "veth", "peer", "name", ends[1][0])
    for end, (namespace, *addresses) in ends:
        if namespace:
            _ip("", "link", "set", end, "netns", namespace)
            _ip(namespace, "link", "set", "lo", "up")
        for address in addresses:
            _ip(namespace, "address", "add", address, "dev", end)
        _ip(namespace, "link", "set", end, "up")


def _ip(namespace: str, *command: str) -> None:
    subprocess.run(["ip", *(("-n", namespace) if namespace else ()), *command], check=True)
