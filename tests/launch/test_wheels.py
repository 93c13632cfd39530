"""Both wheels in an empty environment: the server starts, its index gives the SDK to another one, a call is decided."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.stacks import find_ports, neutral_environ
from launch.stops import wait_until
from sayso import Client, __version__
from service.core.settings import CHECKOUT
from tests.journeys.stacks import PATIENCE_S, QUICK

pytestmark = pytest.mark.timeout(300)  # without a cache, installing takes minutes

KEY, PASSWORD = "k" * 32, "correct horse battery"
README = (CHECKOUT / "README.md").read_text()
(SCRIPT,) = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
_, COMMANDS = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
(PRINTED,) = re.findall(r"^```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


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
    uv, python = Path(sys.executable).with_name("uv"), folder / "server" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder / "server"], check=True)
    options = ["--quiet", "--find-links", str(folder), "--constraint", str(write_constraints(folder))]
    subprocess.run([uv, "pip", "install", "--python", python, *options, "sayso[server]"], check=True)
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


def neutralize(text: str) -> str:
    """Replace the moment, the port and the id in what the script prints."""
    return re.sub(r"\d{4}-[\d-]+ [\d:]+ UTC|(?<=1:)\d+|(?<=/sus_)\w+", "~", text)


def test_installed_server_and_readme_lead_to_a_decided_call(installed: Path, tmp_path: Path) -> None:
    """The commands and the script of README as they stand, in an empty project, but for the port and the key."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "refund.py").write_text(SCRIPT)
    paths = f"{project / '.venv' / 'bin'}:{os.environ['PATH']}"
    constraints = str(write_constraints(tmp_path))
    environ = {**neutral_environ(), "PATH": paths, "PIP_CONSTRAINT": constraints, "PIP_QUIET": "1"}
    with running_server(installed, tmp_path / "server") as url, Client(url, "-") as desk:
        commands = COMMANDS.replace("http://127.0.0.1:8321", url).replace("SAYSO_KEY=...", f"SAYSO_KEY={KEY}")
        agent = start(["bash", "-ec", commands], project, environ)
        desk.sign_in("admin", PASSWORD)
        assert wait_until(lambda: desk.waiting().suspensions != [], PATIENCE_S)
        (waiting,) = desk.waiting().suspensions
        desk.decide(waiting.id, waiting.items[0], "approve")
        printed, complained = agent.communicate(timeout=PATIENCE_S)
        assert agent.returncode == 0, complained
        assert neutralize(complained + printed) == neutralize(PRINTED)

        environ |= {"SAYSO_URL": url, "SAYSO_KEY": KEY}
        again = start(commands.splitlines()[-1].split(), project, environ)
        assert again.communicate(timeout=PATIENCE_S) == (printed, "")
        assert_missing_packages_are_installed_by_the_advice(environ, url)


def start(command: list[str], folder: Path, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_missing_packages_are_installed_by_the_advice(environ: Mapping[str, str], url: str) -> None:
    """Run the command line without its packages, then the command that its error names, then it again."""

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    advice = run("sayso", "--version").stderr.partition("rich: ")[2]
    assert advice == f"pip install --extra-index-url {url}/sdk/ 'sayso[cli]'\n"
    installed = run("bash", "-ec", advice)
    assert installed.returncode == 0, installed.stderr
    assert run("sayso", "--version").stdout == f"sayso {__version__}\ndesk {__version__} at {url}\n"
