"""Tests of starting, restarting and stopping all programs."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from demo.stacks import find_ports
from launch.homes import end_leftovers, find_leftovers
from launch.server import answers
from launch.stacks import READY_TIMEOUT_S, find_python_path
from launch.stops import wait_until
from service.core.settings import CHECKOUT, socket_path
from tests.sentinels import running_group

PATIENCE_S = 30
STANDINS = Path(__file__).parent / "standins"


@dataclass
class Launch:
    """A `make up` of stand-ins."""

    home: Path
    port: int = field(default_factory=find_ports)
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    def up(self, *names: str, **environ: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, str(STANDINS / "standin_up.py"), *names],
            cwd=CHECKOUT,
            env={
                **os.environ,
                "PYTHONPATH": f"{CHECKOUT}:{STANDINS}",
                "SAYSO_HOME": str(self.home),
                "SAYSO_PORT": str(self.port),
                "SAYSO_MODEL_URL": "http://127.0.0.1:1/v1",
                **environ,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.children.append(child)
        return child

    def up_and_ready(self, *names: str) -> subprocess.Popen[str]:
        child = self.up(*names)
        assert wait_for_line(child, "Sayso is ready")
        return child

    def service_pid(self) -> int | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return int(connection.getresponse().read())
        except OSError:
            return None
        finally:
            connection.close()

    def supervisor_pid(self) -> int:
        return int((self.home / "supervisor.pid").read_text())


def wait_for_line(child: subprocess.Popen[str], text: str) -> str:
    assert child.stdout is not None
    seen = []
    for line in child.stdout:
        seen.append(line)
        if text in line:
            return "".join(seen)
    raise AssertionError("".join(seen))


def output_of(child: subprocess.Popen[str]) -> str:
    return child.communicate(timeout=PATIENCE_S)[0]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    launch = Launch(tmp_path / "100% my home")
    yield launch
    for child in launch.children:
        child.kill()
    end_leftovers(launch.home, grace_s=0)
    for child in launch.children:
        child.communicate(timeout=PATIENCE_S)


def test_up_stops_everything_on_ctrl_c(launch: Launch) -> None:
    child = launch.up_and_ready("service", "worker")
    assert launch.service_pid()

    child.send_signal(signal.SIGINT)

    assert child.wait(PATIENCE_S) == 0
    assert launch.service_pid() is None
    assert not answers(socket_path(launch.home))
    assert find_leftovers(launch.home) == ()


def test_up_runs_the_set_up_first_with_the_password(launch: Launch) -> None:
    child = launch.up("service", SAYSO_ADMIN_PASSWORD="a known password")

    assert "set up with a known password" in wait_for_line(child, "Sayso is ready")
    service = launch.service_pid()
    assert b"a known password" not in Path(f"/proc/{service}/environ").read_bytes()


def test_up_gives_the_webhook_secret_only_to_the_service(launch: Launch) -> None:
    secret = "whsec_" + "c2VjcmV0" * 6
    assert wait_for_line(launch.up("service", "worker", SAYSO_WEBHOOK_SECRET=secret), "Sayso is ready")

    for name, there in (("standin_service", True), ("standin_worker", False)):
        leftovers = [Path(f"/proc/{pid}") for pid in find_leftovers(launch.home)]
        named = [process for process in leftovers if name.encode() in (process / "cmdline").read_bytes()]
        environs = [(process / "environ").read_bytes() for process in named]
        assert environs
        assert [secret.encode() in environ for environ in environs] == [there] * len(environs), name


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_up_restarts_a_program_that_ends(launch: Launch, sig: signal.Signals) -> None:
    launch.up_and_ready("service")
    before = launch.service_pid()
    assert before is not None

    os.kill(before, sig)

    assert wait_until(lambda: launch.service_pid() not in (None, before), PATIENCE_S)


def test_up_restarts_a_service_that_hangs(launch: Launch) -> None:
    child = launch.up_and_ready("service")
    before = launch.service_pid()
    assert before is not None

    os.kill(before, signal.SIGSTOP)

    assert wait_for_line(child, "The service no longer responds")
    assert wait_until(lambda: launch.service_pid() not in (None, before), PATIENCE_S)


def test_run_watched_ends_with_a_program_that_hangs(launch: Launch) -> None:
    environ = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{STANDINS}", "SAYSO_PORT": str(launch.port)}
    child = subprocess.Popen(
        [sys.executable, str(STANDINS / "standin_watched.py")],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    launch.children.append(child)
    assert child.stderr is not None
    for _ in range(2):  # a second check begins after the answer to the first one
        assert "GET /healthz" in child.stderr.readline(), "it is watched"
    stopped = launch.service_pid()
    assert stopped is not None

    os.kill(stopped, signal.SIGSTOP)

    assert "no longer responds" in child.communicate(timeout=PATIENCE_S)[0]
    assert child.returncode == 1
    assert launch.service_pid() is None


def test_up_ends_with_its_supervisor(launch: Launch) -> None:
    child = launch.up_and_ready("service", "worker")

    os.kill(launch.supervisor_pid(), signal.SIGKILL)

    assert "The supervisor ended" in output_of(child)
    assert child.returncode == 1
    assert find_leftovers(launch.home) == ()


def test_up_starts_after_a_killed_launch(launch: Launch) -> None:
    first = launch.up_and_ready("service", "worker")
    orphan = launch.service_pid()
    os.kill(launch.supervisor_pid(), signal.SIGSTOP)  # it cannot stop its programs
    first.kill()
    first.wait()
    os.kill(launch.supervisor_pid(), signal.SIGKILL)
    assert orphan in find_leftovers(launch.home)

    launch.up_and_ready("service", "worker")

    assert launch.service_pid() not in (None, orphan)


def test_up_refuses_a_second_launch_of_a_home(launch: Launch) -> None:
    launch.up_and_ready("service")

    second = launch.up("service")

    assert f"already running from {launch.home}: http://127.0.0.1:{launch.port}" in output_of(second)
    assert second.returncode == 1
    assert launch.service_pid()


def test_up_names_the_setting_for_a_taken_port(launch: Launch) -> None:
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", launch.port))
        other.listen()

        child = launch.up("service")

        assert "set SAYSO_PORT to a free port" in output_of(child)
        assert child.returncode == 1


def test_up_prints_the_log_of_a_program_that_cannot_start(launch: Launch) -> None:
    child = launch.up("broken")

    output = output_of(child)

    assert "A program keeps ending" in output
    assert "the standin is broken on purpose" in output
    assert child.returncode == 1
    assert find_leftovers(launch.home) == ()


def test_up_stops_at_once_on_a_second_ctrl_c(launch: Launch) -> None:
    child = launch.up_and_ready("service", "worker")
    os.kill(launch.supervisor_pid(), signal.SIGSTOP)  # it stops nothing

    child.send_signal(signal.SIGINT)

    def ended() -> bool:
        child.send_signal(signal.SIGINT)
        return child.poll() is not None

    assert wait_until(ended, PATIENCE_S)
    assert child.returncode == 0
    assert find_leftovers(launch.home) == ()


def real_launch(launch: Launch, folder: Path, **environ: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-m", "launch"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "SAYSO_HOME": str(launch.home),
            "SAYSO_PORT": str(launch.port),
            "SAYSO_WORKERS": "1",
            **environ,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    launch.children.append(child)
    return child


@pytest.mark.timeout(300)  # three starts of a worker, which import everything each time
def test_up_fails_if_an_agent_cannot_be_imported(launch: Launch, tmp_path: Path) -> None:
    child = real_launch(launch, tmp_path, SAYSO_AGENTS="absent:agent")
    output = child.communicate(timeout=2 * READY_TIMEOUT_S)[0]
    assert child.returncode == 1
    assert "Sayso is ready" not in output
    assert "absent:agent: absent cannot be imported" in output


def test_up_imports_agents_from_the_current_directory(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from demo.agents import support as agent\n", encoding="utf-8")
    child = real_launch(launch, tmp_path, SAYSO_AGENTS="mine:agent")
    assert wait_for_line(child, "Sayso is ready")


def test_up_says_that_it_waits_for_the_primary_and_starts_after_the_fail_over(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "servers").mkdir()
    with running_group(tmp_path / "servers", password="pa55word") as group:
        replica, primary = *group.replicas(), group.find_primary()
        for port in (replica, primary):  # no server can become the primary until one is back
            group.stop(port)
        child = real_launch(launch, tmp_path, SAYSO_REDIS_URL=group.url, SAYSO_POLICY="")
        said = wait_for_line(child, "Waiting for it.")
        assert "127.0.0.1" in said
        assert "pa55word" not in said
        for port in (replica, primary):
            group.start(port)
        assert wait_for_line(child, "Sayso is ready")


def test_up_ends_after_it_waited_for_a_store_that_is_not_there(launch: Launch, tmp_path: Path) -> None:
    child = real_launch(launch, tmp_path, SAYSO_REDIS_URL="redis://127.0.0.1:1/0")
    output = child.communicate(timeout=4 * PATIENCE_S)[0]
    assert child.returncode == 1
    assert "The store at redis://127.0.0.1:1/0 does not answer: nothing listens there. Waiting for it." in output
    assert "Start it, or correct SAYSO_REDIS_URL." in output


def test_find_python_path_makes_relative_folders_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    path = find_python_path({"PYTHONPATH": f"src{os.pathsep}/opt/agents"})
    assert path.split(os.pathsep) == [str(tmp_path / "src"), "/opt/agents", str(tmp_path)]
