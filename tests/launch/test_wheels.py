"""Both wheels in an empty environment: the server starts, its index gives the SDK to another one, a call is decided."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.stacks import find_ports, neutral_environ
from launch.stops import wait_until
from sayso import Client
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, QUICK

pytestmark = pytest.mark.timeout(300)  # without a cache, installing takes minutes

KEY, PASSWORD = "k" * 32, "correct horse battery"
SCRIPT = """\
from sayso import gate

@gate
def refund(order: str, amount: float) -> str:
    return f"refunded {amount} of {order}"

print(refund("A-1", 12.5))
"""


def make_venv(folder: Path) -> Path:
    """Make an environment with pip alone, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


def write_constraints(folder: Path) -> Path:
    """Write the versions of the lock files, so that nothing newer is installed than what is tested."""
    text = (CHECKOUT / "requirements.lock").read_text()
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(re.findall(r"^([\w.-]+==[^\\\n]+)", text, re.MULTILINE)))
    return constraints


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the server's wheel and what it needs."""
    folder = tmp_path_factory.mktemp("wheels")
    for place in (CHECKOUT, CHECKOUT / "distribution" / "server"):
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(build, cwd=place, check=True)
    python = make_venv(folder / "server")
    options = ["--quiet", "--find-links", str(folder), "--constraint", str(write_constraints(folder))]
    subprocess.run([python, "-m", "pip", "install", *options, "sayso[server]"], check=True)
    return python.parent


@contextmanager
def running_server(binaries: Path, home: Path) -> Iterator[str]:
    """Run `sayso up` in a folder whose own `service` package it must not import; yields its address."""
    (home / "service").mkdir(parents=True)
    (home / "service" / "__init__.py").write_text("raise SystemExit('this is another service')\n")
    port = find_ports()
    settings = {"SAYSO_HOME": str(home / "data"), "SAYSO_PORT": str(port)}
    secrets = {"SAYSO_ADMIN_PASSWORD": PASSWORD, "SAYSO_KEY": KEY}
    child = subprocess.Popen(
        [binaries / "sayso", "up"],
        cwd=home,
        env={**neutral_environ(), **QUICK, **settings, **secrets},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert child.stdout is not None
    try:
        lines: list[str] = []
        while "Sayso is ready" not in (lines or [""])[-1]:
            lines.append(child.stdout.readline())
            assert lines[-1], "".join(lines)
        yield f"http://127.0.0.1:{port}"
    finally:
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE_S) == 0


def test_package_stands_beside_no_other(installed: Path) -> None:
    (site,) = installed.parent.glob("lib/*/site-packages")
    assert not {"service", "workers", "templates", "launch", "demo", "tests"} & {place.name for place in site.iterdir()}


def test_installed_server_gives_its_sdk_and_decides_a_call(installed: Path, tmp_path: Path) -> None:
    python = make_venv(tmp_path / "agent")
    with running_server(installed, tmp_path / "project") as url, Client(url, "-") as desk:
        index = ["--extra-index-url", f"{url}/sdk/", "--constraint", str(write_constraints(tmp_path))]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *index, "sayso[cli]"], check=True)
        environ = {**neutral_environ(), "SAYSO_URL": url, "SAYSO_KEY": KEY}
        agent = subprocess.Popen([python, "-c", SCRIPT], env=environ, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        desk.sign_in("admin", PASSWORD)
        shown = subprocess.run([python.parent / "sayso", "--version"], capture_output=True, text=True, check=True)
        assert wait_until(lambda: desk.waiting().suspensions != [], PATIENCE_S)
        (waiting,) = desk.waiting().suspensions
        desk.decide(waiting.id, waiting.items[0], "approve")
        printed, _ = agent.communicate(timeout=PATIENCE_S)
    assert (printed, agent.returncode) == ("refunded 12.5 of A-1\n", 0)
    assert shown.stdout.startswith("sayso ")
