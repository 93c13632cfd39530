"""Tests of stacks with ports and settings of their own."""

from pathlib import Path

import pytest

from demo.stacks import find_ports, neutral_environ, running_stack
from launch import NotReady
from launch.checks import check_port
from launch.homes import find_leftovers


def test_find_ports_returns_two_free_neighbours() -> None:
    port = find_ports()

    check_port("127.0.0.1", port)
    check_port("127.0.0.1", port + 1)


def test_neutral_environ_drops_the_callers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_PORT", "1")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")

    assert {"SAYSO_PORT", "REDIS_URL"}.isdisjoint(neutral_environ())


def test_running_stack_raises_the_output_of_a_failed_start(tmp_path: Path) -> None:
    with (
        pytest.raises(NotReady, match=r"SAYSO_WORKERS: .*greater than or equal to 1"),
        running_stack(tmp_path, {"SAYSO_WORKERS": "0"}),
    ):
        pass

    assert find_leftovers(tmp_path) == ()
