"""Holders of redeemed permits: which process runs a call, and whether it still does."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from sayso.client.requests import new_key

_RUNNING: set[str] = set()
_OUTER: ContextVar[tuple[str, ...]] = ContextVar("sayso_holders", default=())


def begin() -> str:
    """Return a new holder for one attempt of a call. It counts as running until `end`.

    Its name tells other processes of the machine, by process id and start time, whether it can still report.
    """
    holder = f"try-{new_key()}-{_find_machine()}-{os.getpid()}-{_read_start(os.getpid()) or 0}"
    _RUNNING.add(holder)
    return holder


def end(holder: str) -> None:
    """Let a holder count as not running: it has reported, or never will."""
    _RUNNING.discard(holder)


@contextmanager
def run_as(holder: str) -> Iterator[None]:
    """Run the holder's call within the block, and let it end there."""
    _OUTER.set((*_OUTER.get(), holder))
    try:
        yield
    finally:  # perhaps in another context: a block may be entered in one thread and left in another
        end(holder)
        _OUTER.set(tuple(outer for outer in _OUTER.get() if outer != holder))


def is_running(holder: str) -> bool | None:
    """Whether the holder runs its call and can still report it; None if only another machine knows.

    A holder whose call makes this very call counts as not running: it cannot report before this call returns.
    """
    _, _, rest = holder.partition("try-")
    parts = rest.split("-")
    if len(parts) != 4 or not (parts[2] + parts[3]).isdecimal() or parts[1] != _find_machine() or os.name != "posix":
        return None
    pid, started = int(parts[2]), int(parts[3])
    if pid == os.getpid():
        return holder in _RUNNING and holder not in _OUTER.get()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # a process of another user
    now_started = _read_start(pid)
    return started == 0 or now_started is None or now_started == started


@cache
def _find_machine() -> str:
    """Return a name of this boot of this machine, or of this container: process ids are unique within it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        place = f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:  # not Linux
        place = os.uname().nodename if hasattr(os, "uname") else ""
    return hashlib.sha256(place.encode()).hexdigest()[:12]


def _read_start(pid: int) -> int | None:
    """Return when a process started, in ticks since the boot; 0 if it has ended, None if that cannot be read."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return 0 if state in "ZX" else int(numbers[18])
