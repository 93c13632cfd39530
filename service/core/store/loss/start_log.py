"""The records of calls that this process started: on disk, where it has a home, else the latest in memory.

After the store went back they tell which calls may have run although the store has them as unspent.
"""

import base64
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import structlog

from sayso.core.clock import DAY_MS, now_ms

_KEPT_DAYS = 7
_IN_MEMORY = 2_000

log = structlog.get_logger(__name__)


class Start(NamedTuple):
    """The packed record of a suspension after the commit at `at_ms`, which let a call of it start."""

    at_ms: int
    suspension_id: str
    packed: bytes


class StartLog:
    """The starts that processes of one home and tenant know of."""

    def __init__(self) -> None:
        self._begin: Path | None = None
        self._latest: deque[Start] = deque(maxlen=_IN_MEMORY)
        self._file: tuple[int, int] | None = None

    def keep_in(self, folder: Path, tenant: str) -> None:
        """Write to files of this folder from now on, and delete those of earlier weeks."""
        self._begin = folder / f"{tenant}.starts"
        for path in self._list_files():
            if int(path.suffix[1:]) < now_ms() // DAY_MS - _KEPT_DAYS:
                path.unlink(missing_ok=True)

    def note(self, start: Start) -> None:
        """Keep a start, before its call begins."""
        if self._begin is None:
            self._latest.append(start)
            return
        line = f"{start.at_ms} {start.suspension_id} {base64.b64encode(start.packed).decode()}\n".encode()
        try:
            if os.write(self._open(start.at_ms // DAY_MS), line) == len(line):
                return
        except OSError as error:
            log.warning("start_not_noted", suspension=start.suspension_id, error=str(error))
        self._latest.append(start)

    def list_since(self, at_ms: int) -> Iterator[Start]:
        """Return the starts since then, the oldest of each file first."""
        for path in self._list_files():
            if int(path.suffix[1:]) >= at_ms // DAY_MS:
                with path.open("rb") as lines:
                    yield from (start for line in lines if (start := _read(line)) and start.at_ms >= at_ms)
        yield from (start for start in tuple(self._latest) if start.at_ms >= at_ms)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file[1])
            self._file = None

    def _list_files(self) -> list[Path]:
        begin = self._begin
        return sorted(begin.parent.glob(f"{begin.name}.[0-9]*")) if begin is not None else []

    def _open(self, day: int) -> int:
        if self._file is None or self._file[0] != day:
            self.close()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._file = day, os.open(f"{self._begin}.{day}", flags, 0o600)
        return self._file[1]


def _read(line: bytes) -> Start | None:
    """Return a start, or None for a line that a crash has cut."""
    with suppress(ValueError):
        at_ms, suspension_id, packed = line.split(b" ")
        if packed.endswith(b"\n"):
            return Start(int(at_ms), suspension_id.decode(), base64.b64decode(packed, validate=False))
    return None
