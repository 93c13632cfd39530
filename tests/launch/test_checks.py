"""Tests of the checks of ports, store and service."""

import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from demo.stacks import neutral_environ
from launch import PortTaken
from launch.checks import check_port, find_store_fault, is_healthy
from service.core.settings import CHECKOUT


def test_check_port_accepts_a_free_port() -> None:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    check_port("127.0.0.1", port)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_check_port_names_a_taken_port(host: str) -> None:
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(PortTaken, match=f"{host}:{port}.*SAYSO_PORT") as caught:
            check_port(host, port)
    assert caught.value.facts == {"port": port}


def test_find_store_fault_detects_a_missing_store(store_url: str, tmp_path: Path) -> None:
    assert find_store_fault(store_url) is None
    fault = find_store_fault(f"unix://{tmp_path}/nothing.sock")
    assert fault is not None
    assert "there is no such socket" in fault


def test_is_healthy_is_false_without_a_service() -> None:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))

        assert not is_healthy("127.0.0.1", probe.getsockname()[1])


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [("service", 1, ""), ("worker", 1, ""), ("clock", 1, ""), ("stroe", 2, "service, worker, clock")],
)
def test_probe_of_a_program_that_does_not_run_fails(clean_store_url: str, name: str, code: int, says: str) -> None:
    environ = {**neutral_environ(), "SAYSO_REDIS_URL": clean_store_url, "SAYSO_PORT": "1"}
    command = [sys.executable, "-m", "launch.checks", name]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


def test_probe_of_a_worker_that_waits_for_the_store_passes() -> None:
    environ = {**neutral_environ(), "SAYSO_REDIS_URL": "redis://127.0.0.1:1/0"}
    for name in ("worker", "clock"):
        subprocess.run([sys.executable, "-m", "launch.checks", name], cwd=CHECKOUT, env=environ, check=True)
