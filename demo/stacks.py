"""Run a whole Sayso for the length of a block: real processes, in a home and on ports of their own.

It is `make up` in a child process, with nothing of the caller's own settings in its environment.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from launch.checks import check_port
from launch.errors import NotReady, PortTaken
from launch.homes import prepare_home
from launch.leftovers import end_leftovers
from launch.supervision import ProgramState, Supervisor
from launch.waits import wait_until
from sayso.clock import new_secret
from service.settings import CHECKOUT, variable_of

READY_TIMEOUT_S = 90
STOP_TIMEOUT_S = 15
PORTS = range(20_000, 32_000, 2)
"""Below the ports that systems hand out by themselves, so that nobody takes ours between the look and the start."""

_TRIES = 50


@dataclass(frozen=True)
class Stack:
    """A running Sayso, and the two credentials it was started with."""

    home: Path
    port: int
    admin_password: str
    agent_key: str
    child: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.port}"

    def programs(self) -> tuple[ProgramState, ...]:
        """Return what the supervisor knows of each program."""
        return Supervisor(self.home, self.child).states()


@contextmanager
def running_stack(
    home: Path, environ: Mapping[str, str] | None = None, python: str = sys.executable
) -> Iterator[Stack]:
    """Start everything in `home` and stop it in the end; raises `NotReady` with what was printed.

    `python` is that of the environment to run it in.

    `environ` holds further settings. The password and the key are known settings too, so that the same home can be
    started again with them.
    """
    prepare_home(home)
    settings = {
        "SAYSO_ADMIN_PASSWORD": new_secret(),
        "SAYSO_AGENT_KEY": new_secret(),
        "SAYSO_PORT": str(find_ports()),
        **(environ or {}),
        "SAYSO_HOME": str(home),
    }
    printed = home / "launch.log"
    with printed.open("wb") as out:
        child = subprocess.Popen(
            [python, "-m", "launch"],
            cwd=CHECKOUT,
            env={**neutral_environ(), **settings},
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _await_ready(child, printed)
        yield Stack(
            home=home,
            port=int(settings["SAYSO_PORT"]),
            admin_password=settings["SAYSO_ADMIN_PASSWORD"],
            agent_key=settings["SAYSO_AGENT_KEY"],
            child=child,
        )
    finally:
        _stop(child, home)


def find_ports() -> int:
    """Return a free port whose next one, the model endpoint's, is free too."""
    dice = SystemRandom()
    for _ in range(_TRIES):
        port = dice.choice(PORTS)
        try:
            check_port("127.0.0.1", port)
            check_port("127.0.0.1", port + 1)
        except PortTaken:
            continue
        return port
    raise PortTaken(f"No two free ports were found in {_TRIES} tries; end what takes them and try again.")


def neutral_environ() -> dict[str, str]:
    """Return our environment without any setting of Sayso's."""
    ours = variable_of("")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours) and name != "REDIS_URL"}


def _await_ready(child: subprocess.Popen[bytes], printed: Path) -> None:
    def said() -> str:
        return printed.read_text(encoding="utf-8", errors="replace")

    wait_until(lambda: "Sayso is ready" in said() or child.poll() is not None, READY_TIMEOUT_S)
    if "Sayso is ready" not in said() or child.poll() is not None:
        raise NotReady(f"Sayso did not come up; this is what it printed:\n{said()}")


def _stop(child: subprocess.Popen[bytes], home: Path) -> None:
    child.terminate()
    try:
        child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    end_leftovers(home, 0)
