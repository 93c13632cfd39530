"""Tests of the checks of ports, store and service."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from launch import PortTaken
from launch.checks import check_port, find_store_fault, is_healthy


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
    assert not fault.is_temporary
    assert "there is no such socket" in fault.sentence


def test_is_healthy_is_false_without_a_service() -> None:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))

        assert not is_healthy("127.0.0.1", probe.getsockname()[1])
