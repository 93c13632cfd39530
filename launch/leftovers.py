"""Find and end what an earlier launch of a home left behind, and what a stop of this one did not reach.

Every program is started with a mark in its environment, which forks inherit whatever process group or session they
move to. So a work horse whose worker was killed, or a service whose supervisor was, is found by the mark alone. Where
there is no `/proc` nothing can be found this way, and the port check tells of a service that was left behind.
"""

import contextlib
import os
import signal
from pathlib import Path

from launch.waits import wait_until

MARK = "SAYSO_LAUNCHED_FROM"
PROC = Path("/proc")
KILL_TIMEOUT_S = 5


def mark(home: Path) -> dict[str, str]:
    """Return the environment variable that every program of this home carries."""
    return {MARK: str(home)}


def find_leftovers(home: Path) -> tuple[int, ...]:
    """Return the ids of all live processes that were launched from this home, without our own."""
    wanted = os.fsencode(f"{MARK}={home}")
    return tuple(pid for pid in _pids() if pid != os.getpid() and wanted in _environment(pid))


def end_leftovers(home: Path, grace_s: float) -> None:
    """Ask every process of this home to end, kill those that have not within the grace; return when all are gone."""
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
        return []  # gone meanwhile, or another user's


def _send(pids: tuple[int, ...], sig: signal.Signals) -> int:
    """Send the signal to each, and return how many there were."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
    return len(pids)
