"""A stack runs on ports of its own, with nothing of its caller's settings, or says why it does not."""

from pathlib import Path

import pytest

from demo.stacks import find_ports, neutral_environ, running_stack
from launch.checks import check_port
from launch.errors import NotReady
from launch.leftovers import find_leftovers


def test_two_neighbouring_free_ports_are_found() -> None:
    port = find_ports()

    check_port("127.0.0.1", port)
    check_port("127.0.0.1", port + 1)


def test_the_callers_own_settings_do_not_reach_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_PORT", "1")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")

    assert {"SAYSO_PORT", "REDIS_URL"}.isdisjoint(neutral_environ())


def test_a_stack_that_cannot_come_up_is_told_with_what_it_printed(tmp_path: Path) -> None:
    with (
        pytest.raises(NotReady, match=r"SAYSO_WORKERS: .*greater than or equal to 1"),
        running_stack(tmp_path, {"SAYSO_WORKERS": "0"}),
    ):
        pass

    assert find_leftovers(tmp_path) == ()
