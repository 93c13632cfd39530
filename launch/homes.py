"""The home folder of an installation, and its lock: one launch at a time.

The lock is an `flock`, which the kernel releases with its process, so a kill -9 leaves none behind. The note in the
file is valid only while the lock is held.

Processes that an earlier launch of a home left behind, or that a stop did not reach.

Every program has a mark in its environment. Forks inherit it in any process group or session, so it finds work horses
of a killed worker and services of a killed supervisor. Without `/proc` none are found; the port check then reports a
service that is left.
"""

import contextlib
import fcntl
import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch import AlreadyRunning, CannotStart, UnsafeFolder
from launch.stops import wait_until
from service.core.settings import LAUNCHED_FROM


def prepare_home(home: Path) -> None:
    """Create the home and its folders with mode 700. An existing home keeps its mode."""
    try:
        for folder in (home, data_folder(home), logs_folder(home)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(
            f"Cannot create {error.filename}: {error.strerror}. Set SAYSO_HOME to a folder that you own."
        ) from None


def data_folder(home: Path) -> Path:
    """Return the folder with the embedded server's files."""
    return home / "data"


def logs_folder(home: Path) -> Path:
    """Return the folder with the logs."""
    return home / "logs"


def prepare_socket_folder(home: Path, socket: Path) -> None:
    """Create the short folder for sockets of a home with a long path. Raises `UnsafeFolder` if it is not private."""
    folder = socket.parent
    if folder == home:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UnsafeFolder(f"Other users can access {folder}. Set SAYSO_HOME to a shorter path of your own.")


@contextmanager
def locked(home: Path, address: str) -> Iterator[None]:
    """Lock the home within the block. Raises `AlreadyRunning` with the address of the running Sayso."""
    with (home / "launch.lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise _already_running(home, lock.read()) from None
        lock.seek(0)
        lock.truncate()
        json.dump({"pid": os.getpid(), "address": address}, lock)
        lock.flush()
        yield


def _already_running(home: Path, note: str) -> AlreadyRunning:
    if not note:  # the holder has not written its note yet
        return AlreadyRunning(f"Another process is starting Sayso from {home}. Try again in a moment.")
    holder = json.loads(note)
    return AlreadyRunning(
        f"Sayso is already running from {home}: {holder['address']} (process {holder['pid']}). "
        f"Stop it with 'kill {holder['pid']}', or set SAYSO_HOME and SAYSO_PORT to run a second one.",
        **holder,
    )


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
