"""Leave word on this machine of which calls a worker starts and how they end, for whoever comes after it was killed.

A process that is killed takes its memory along, but not what it has handed to the operating system. So these notes
need no waiting for a disk, and shorten the doubt about a call from a commit's time to the call itself. They are
believed on the machine that wrote them, unless it was started anew. That a call ended is believed as it is; that one
never started, only where the notes must be whole: the process that wrote them is gone. In every other case nothing is
known, and a person is asked.
"""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from sayso.clock import monotonic_ms, now_ms
from sayso.records.suspensions import Intent
from sayso.records.tool_calls import ToolResult
from sayso.runner.batches import is_small

FOLDER = "notes"
_KEPT_MS = 7 * 86_400_000
_LOOK_S = 0.05

log = structlog.get_logger()
_kept: dict[str, "Notes"] = {}
"""The notes of the workers in this process, by their names."""


@dataclass(frozen=True)
class Left:
    """What a worker has left word of: the calls it started, and the results of those that ended.

    Only where the notes are `whole` did nothing happen but what they say; else their writer may still live.
    """

    whole: bool = True
    started: frozenset[str] = frozenset()
    results: Mapping[str, ToolResult] = field(default_factory=dict)


class Notes:
    """One worker's notes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._write({"machine": _describe_machine(), "pid": os.getpid()})

    def note_start(self, attempt: int, key: str) -> None:
        """Write that a call starts; to be called right before it does. What this raises keeps it from starting."""
        self._write({"started": _name(attempt, key)})

    def note_end(self, attempt: int, key: str, result: ToolResult) -> None:
        """Write how a call ended, unless that is large: then there is only the doubt."""
        if is_small(result):
            self._write({"ended": _name(attempt, key), "result": result.model_dump(mode="json")})

    def close(self) -> None:
        """Remove the notes."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _write(self, line: Mapping[str, object]) -> None:
        """Notes with a gap are worse than none: where one cannot be written, all are taken away."""
        raw = json.dumps(line).encode() + b"\n"
        try:
            if os.write(self._file, raw) == len(raw):
                return
        except OSError as error:
            log.warning("note_not_written", path=str(self._path), error=str(error))
        self._path.unlink(missing_ok=True)


@contextmanager
def keeping_notes(home: Path, holder: str) -> Iterator[None]:
    """Keep notes for this worker while it drives runs, and remove them when it has come to an orderly end.

    Where none can be kept, it drives without: then there is more doubt when it is killed, nothing else.
    """
    folder = home / FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_old(folder)
        _kept[holder] = notes = Notes(folder / holder)
    except OSError as error:
        log.warning("no_notes_kept", folder=str(folder), error=str(error))
        yield
        return
    try:
        yield
    finally:
        del _kept[holder]
        notes.close()


def find_notes(holder: str) -> Notes | None:
    """Return where this worker keeps notes, if it does."""
    return _kept.get(holder)


def read_left(home: Path, holder: str) -> Left | None:
    """Return what a worker left word of, or None when nothing can be known: it ended in order, or was elsewhere."""
    path = home / FOLDER / holder
    try:
        with path.open(encoding="utf-8") as file:
            about = json.loads(file.readline())
            gone = not _is_alive(about["pid"])  # before the rest is read: what it wrote until it died is then there
            *lines, torn = file.read().split("\n")
        if about["machine"] != _describe_machine():
            return None
        notes = [json.loads(line) for line in lines]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Left(
        whole=gone and not torn,
        started=frozenset(note["started"] for note in notes if "started" in note),
        results={note["ended"]: ToolResult.model_validate(note["result"]) for note in notes if "ended" in note},
    )


async def hear_out(home: Path, begun: Sequence[Intent], patience_ms: int) -> Mapping[str, Left | None]:
    """Return what each worker that began these calls left word of.

    One that still lives, stopped or cut off from the store for a while, may be about to say how they ended: before a
    person is asked about that, it is given some time.
    """
    give_up_at_ms = monotonic_ms() + patience_ms
    while True:
        left = {holder: read_left(home, holder) for holder in {one.holder for one in begun}}
        if monotonic_ms() >= give_up_at_ms or not any(_may_be_told(left[one.holder], one) for one in begun):
            return left
        await asyncio.sleep(_LOOK_S)


def _may_be_told(left: Left | None, intent: Intent) -> bool:
    """Whether a call's worker lives, and has not said how it ended; what may run again need not wait for that."""
    if left is None or left.whole or intent.idempotent or intent.result is not None:
        return False
    return result_of(left, intent) is None


def never_started(left: Left, intent: Intent) -> bool:
    """Return whether a call is known not to have been started, by what its worker left word of."""
    return left.whole and _name(intent.attempt, intent.idempotency_key) not in left.started


def result_of(left: Left, intent: Intent) -> ToolResult | None:
    """Return how a call ended, by what its worker left word of."""
    return left.results.get(_name(intent.attempt, intent.idempotency_key))


def _name(attempt: int, key: str) -> str:
    return f"{attempt} {key}"


def _describe_machine() -> list[str]:
    """What makes unwritten files whole and process numbers comparable. Raises `OSError` where there is no external_event."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return [os.uname().nodename, boot, os.readlink("/proc/self/ns/pid")]


def _is_alive(pid: int) -> bool:
    """Whether there is such a process that could still do anything; one that was killed and not yet buried cannot."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return False
    return status.rpartition(") ")[2][:1] not in ("Z", "X")


def _forget_old(folder: Path) -> None:
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime * 1000 < now_ms() - _KEPT_MS:
                path.unlink()
