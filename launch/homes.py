"""The home folder of an installation, and its lock: one launch at a time.

The lock is an `flock`, which the kernel releases with its process, so a kill -9 leaves none behind. The note in the
file is valid only while the lock is held.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch.errors import AlreadyRunning, CannotStart, UnsafeFolder


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
