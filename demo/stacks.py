"""A complete Sayso for the length of a block: real processes, in a home and on ports of its own.

It runs `make up` in a child process, without the settings of its caller.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from launch import NotReady, PortTaken
from launch.checks import check_port
from launch.homes import end_leftovers, prepare_home
from launch.stops import wait_until
from launch.supervision import ProgramState, Supervisor
from sayso.core.clock import new_secret
from service.core.settings import CHECKOUT, variable_of

READY_TIMEOUT_S = 150
STOP_TIMEOUT_S = 15
PORTS = range(20_000, 32_000, 2)
"""Below the ephemeral ports of the system, so that no other program takes a port before we use it."""

_TRIES = 50


@dataclass(frozen=True)
class Stack:
    """A running Sayso, and its two credentials."""

    home: Path
    port: int
    admin_password: str
    agent_key: str
    child: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def programs(self) -> tuple[ProgramState, ...]:
        """Return the state of each program."""
        return Supervisor(self.home, self.child).states()


@contextmanager
def running_stack(
    home: Path,
    environ: Mapping[str, str] | None = None,
    python: str = sys.executable,
    checkout: Path = CHECKOUT,
) -> Iterator[Stack]:
    """Start everything in `home`, and stop it after the block. Raises `NotReady` with the output.

    `environ` holds further settings. The Sayso in `checkout` runs with the interpreter `python`. The password and the
    key are settings too, so the same home can be started again with them.
    """
    prepare_home(home)
    settings = {
        "SAYSO_ADMIN_PASSWORD": new_secret(),
        "SAYSO_KEY": new_secret(),
        "SAYSO_PORT": str(find_ports()),
        **(environ or {}),
        "SAYSO_HOME": str(home),
    }
    output = home / "launch.log"
    with output.open("wb") as out:
        child = subprocess.Popen(
            [python, "-m", "launch"],
            cwd=checkout,
            env={**neutral_environ(), **settings},
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _await_ready(child, output)
        yield Stack(
            home=home,
            port=int(settings["SAYSO_PORT"]),
            admin_password=settings["SAYSO_ADMIN_PASSWORD"],
            agent_key=settings["SAYSO_KEY"],
            child=child,
        )
    finally:
        _stop(child, home)


def find_ports() -> int:
    """Return a free port whose successor, for the model endpoint, is free too."""
    random = SystemRandom()
    for _ in range(_TRIES):
        port = random.choice(PORTS)
        try:
            check_port("127.0.0.1", port)
            check_port("127.0.0.1", port + 1)
        except PortTaken:
            continue
        return port
    raise PortTaken(f"Found no two free ports in {_TRIES} tries. Stop other programs and try again.")


def neutral_environ() -> dict[str, str]:
    """Return our environment without Sayso's settings."""
    ours = variable_of("")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours) and name != "REDIS_URL"}


def _await_ready(child: subprocess.Popen[bytes], output: Path) -> None:
    def read() -> str:
        return output.read_text(encoding="utf-8", errors="replace")

    wait_until(lambda: "Sayso is ready" in read() or child.poll() is not None, READY_TIMEOUT_S)
    if "Sayso is ready" not in read() or child.poll() is not None:
        raise NotReady(f"Sayso did not start. Its output:\n{read()}")


def _stop(child: subprocess.Popen[bytes], home: Path) -> None:
    child.terminate()
    try:
        child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    end_leftovers(home, 0)
