"""Processes that an earlier launch of a home left behind, or that a stop did not reach.

Every program has a mark in its environment. Forks inherit it in any process group or session, so it finds work horses
of a killed worker and services of a killed supervisor. Without `/proc` none are found; the port check then reports a
service that is left.
"""

import contextlib
import os
import signal
from pathlib import Path

from launch.waits import wait_until
from service.core.settings import LAUNCHED_FROM

PROC = Path("/proc")
KILL_TIMEOUT_S = 5


def mark(home: Path) -> dict[str, str]:
    """Return the environment variable that every program of this home has."""
    return {LAUNCHED_FROM: str(home)}


def find_leftovers(home: Path) -> tuple[int, ...]:
    """Return the ids of all live processes launched from this home, except ours."""
    entry = os.fsencode(f"{LAUNCHED_FROM}={home}")
    return tuple(pid for pid in _pids() if pid != os.getpid() and entry in _environment(pid))


def end_leftovers(home: Path, grace_s: float) -> None:
    """Terminate every process of this home, and kill those that outlive the grace period."""
    _send(find_leftovers(home), signal.SIGTERM)
    if not wait_until(lambda: not find_leftovers(home), grace_s):
        wait_until(lambda: not _send(find_leftovers(home), signal.SIGKILL), KILL_TIMEOUT_S)


def _pids() -> tuple[int, ...]:
    if not PROC.is_dir():
        return ()
    return tuple(int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or belongs to another user


def _send(pids: tuple[int, ...], sig: signal.Signals) -> int:
    """Send the signal to each process and return their number."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
    return len(pids)
