"""Ctrl-C at any moment ends every command without a traceback."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from demo.stacks import find_ports, neutral_environ
from launch.homes import end_leftovers, find_leftovers
from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, QUICK

HOOK = """\
import os, signal, sys

def interrupt(event, args):
    if event == "import" and args[0] == os.environ["INTERRUPT_AT"]:
        try:
            os.close(os.open(os.environ["INTERRUPTED"], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
"""
"""What Python runs as it starts: it presses Ctrl-C once, as the first program imports the module."""

ENDS = {0, 130, -signal.SIGINT}


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a desk in a home of its own, of which no process is left at the end."""
    home, port = tmp_path / "home", str(find_ports())
    yield {**neutral_environ(), **QUICK, "HOME": str(tmp_path), "SAYSO_HOME": str(home), "SAYSO_PORT": port}
    left = find_leftovers(home)
    end_leftovers(home, 0)
    assert left == ()


@pytest.fixture
def hooked(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The same with the hook."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    paths = f"{tmp_path / 'hook'}:{CHECKOUT}"
    return {**environ, "PYTHONPATH": paths, "INTERRUPTED": str(tmp_path / "interrupted")}


def start(*words: str, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sayso", *words]
    return subprocess.Popen(
        command, cwd=CHECKOUT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def check_end(child: subprocess.Popen[str]) -> str:
    printed, _ = child.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in printed
    assert child.returncode in ENDS, printed
    return printed


@pytest.mark.parametrize(
    ("command", "module"),
    [
        *(("inbox --once", module) for module in ("typer", "rich.console", "httpx")),
        *(("up", module) for module in ("typer", "launch.stacks", "pydantic", "xmlrpc.client")),
        *(("worker", module) for module in ("service.core.settings", "rq")),
        *((command, "service.core.settings") for command in ("serve", "clock", "setup", "demo")),
    ],
)
def test_interrupt_while_a_module_is_imported(hooked: dict[str, str], command: str, module: str) -> None:
    check_end(start(*command.split(), environ={**hooked, "INTERRUPT_AT": module}))
    assert Path(hooked["INTERRUPTED"]).exists(), f"{command} imports no {module}"


def start_and_wait(command: str, line: str, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a command, and return once it has printed a line with this text."""
    child = start(command, environ=environ)
    assert child.stdout is not None
    assert any(line in printed for printed in iter(child.stdout.readline, ""))
    return child


def test_interrupt_of_a_running_worker_and_desk(environ: dict[str, str]) -> None:
    desk = start_and_wait("up", "Sayso is ready", environ)
    worker = start_and_wait("worker", "worker_started", environ)
    worker.send_signal(signal.SIGINT)
    check_end(worker)
    desk.send_signal(signal.SIGINT)
    check_end(desk)


def test_interrupt_of_a_desk_that_stops(environ: dict[str, str]) -> None:
    desk = start_and_wait("up", "Sayso is ready", environ)
    programs = set(find_leftovers(Path(environ["SAYSO_HOME"])))
    desk.send_signal(signal.SIGINT)
    assert wait_until(lambda: set(find_leftovers(Path(environ["SAYSO_HOME"]))) < programs, PATIENCE_S)
    desk.send_signal(signal.SIGINT)
    check_end(desk)
