"""Make a home ready for one launch at a time, and tell who has it when somebody does.

The lock is an `flock`, which the kernel drops with its holder: no kill -9 can leave one behind, and what an earlier
holder wrote into the file is only read while the lock is held.
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
    """Create the home and its folders, each for this user alone; a home that is already there keeps its mode."""
    try:
        for folder in (home, data_folder(home), logs_folder(home)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(
            f"{error.filename} cannot be made: {error.strerror}. Set SAYSO_HOME to a folder of yours."
        ) from None


def data_folder(home: Path) -> Path:
    """Return where the embedded server keeps its files."""
    return home / "data"


def logs_folder(home: Path) -> Path:
    """Return where every program's log lies."""
    return home / "logs"


def prepare_socket_folder(home: Path, socket: Path) -> None:
    """Create the short folder that sockets of a home with a long path lie in; refuse one that is not ours alone."""
    folder = socket.parent
    if folder == home:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UnsafeFolder(f"{folder} is not a folder of yours alone; set SAYSO_HOME to a shorter path of your own.")


@contextmanager
def locked(home: Path, address: str) -> Iterator[None]:
    """Hold the home for the length of the block, or raise `AlreadyRunning` with the address of who holds it."""
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
    if not note:  # the holder has the lock and is about to write its note
        return AlreadyRunning(f"Sayso is just being started from {home}; wait a moment.")
    holder = json.loads(note)
    return AlreadyRunning(
        f"Sayso already runs from {home}: {holder['address']} (process {holder['pid']}). "
        f"Stop it with Ctrl-C there or 'kill {holder['pid']}', or set SAYSO_HOME and SAYSO_PORT for a second one.",
        **holder,
    )
