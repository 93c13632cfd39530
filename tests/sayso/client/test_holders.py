"""Whether the process that runs a call still does."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from sayso.client import holders

PROGRAM = "from sayso.client.holders import begin; print(begin(), flush=True); input()"


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process, which prints its holder and waits."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def read_holder(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_holder_runs_until_it_ends() -> None:
    holder = holders.begin()
    assert holders.is_running(holder) is True
    holders.end(holder)
    assert holders.is_running(holder) is False


def test_holder_of_another_process_runs_until_it_is_killed(other: subprocess.Popen[str]) -> None:
    holder = read_holder(other)
    assert holders.is_running(holder) is True
    other.kill()
    other.wait()
    assert holders.is_running(holder) is False


def test_holder_whose_process_id_was_given_to_another_process_is_lost(other: subprocess.Popen[str]) -> None:
    *parts, started = read_holder(other).split("-")
    assert holders.is_running("-".join([*parts, str(int(started) + 1)])) is False


def test_holder_does_not_run_for_calls_within_its_own_call() -> None:
    holder = holders.begin()
    with holders.run_as(holder):
        assert holders.is_running(holder) is False
    assert holders.is_running(holder) is False


@pytest.mark.parametrize("holder", ["try-1", "desk-7", "try-a-b-c-d", "try-0-elsewhere-1-1", ""])
def test_holder_of_another_machine_or_client_is_unknown(holder: str) -> None:
    assert holders.is_running(holder) is None
