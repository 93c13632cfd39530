"""Notes of a worker on its own machine: which calls it started and how they ended.

A killed process loses its memory, but not what it has written to the operating system, so fewer calls are in doubt.
Notes count only on the machine that wrote them and until it restarts. A noted end always counts. That a call never
started counts only if the writer is gone, because only then its notes are whole. Otherwise a person is asked.
"""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from sayso.core.clock import DAY_MS, boot_id, monotonic_ms, now_ms
from sayso.core.records.suspensions import Intent
from sayso.core.records.tools import ToolResult
from sayso.runner.batches import is_small

FOLDER = "notes"
_KEPT_MS = 7 * DAY_MS
_POLL_S = 0.05

log = structlog.get_logger()
_kept: dict[str, "Notes"] = {}  # open notes of the workers in this process, by holder


@dataclass(frozen=True)
class Noted:
    """The calls that a worker started, and their results. Unless `whole`, it may live and have started others."""

    whole: bool = True
    started: frozenset[str] = frozenset()
    results: Mapping[str, ToolResult] = field(default_factory=dict)


class Notes:
    """The notes of one worker."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._write({"machine": _describe_machine(), "pid": os.getpid()})

    def note_start(self, attempt: int, key: str) -> None:
        """Write that a call starts. Call this right before; an error of it keeps the call from starting."""
        self._write({"started": _name(attempt, key)})

    def note_end(self, attempt: int, key: str, result: ToolResult) -> None:
        if is_small(result):
            self._write({"ended": _name(attempt, key), "result": result.model_dump(mode="json")})

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _write(self, line: Mapping[str, object]) -> None:
        """Append a line, or remove all notes if that fails: notes with a gap are worse than none."""
        raw = json.dumps(line).encode() + b"\n"
        try:
            if os.write(self._file, raw) == len(raw):
                return
        except OSError as error:
            log.warning("note_not_written", path=str(self._path), error=str(error))
        self._path.unlink(missing_ok=True)


@contextmanager
def keeping_notes(home: Path, holder: str) -> Iterator[None]:
    """Keep notes for this worker while it drives runs, if the folder is writable; remove them at an orderly end."""
    folder = home / FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime * 1000 < now_ms() - _KEPT_MS:
                    path.unlink()
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
    """Return the open notes of this worker, if any."""
    return _kept.get(holder)


def read_notes(home: Path, holder: str) -> Noted | None:
    """Read the notes of a worker, or return None if there are none here: it ended in order, or ran elsewhere."""
    path = home / FOLDER / holder
    try:
        with path.open(encoding="utf-8") as file:
            about = json.loads(file.readline())
            gone = not _is_alive(about["pid"])  # before the rest is read, so that notes of a dead writer are whole
            *lines, torn = file.read().split("\n")
        if about["machine"] != _describe_machine():
            return None
        notes = [json.loads(line) for line in lines]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Noted(
        whole=gone and not torn,
        started=frozenset(note["started"] for note in notes if "started" in note),
        results={note["ended"]: ToolResult.model_validate(note["result"]) for note in notes if "ended" in note},
    )


async def await_notes(home: Path, started: Sequence[Intent], patience_ms: int) -> Mapping[str, Noted | None]:
    """Return the notes of the workers of these calls, after up to `patience_ms` for any that may still write."""
    give_up_at_ms = monotonic_ms() + patience_ms
    while True:
        notes = {holder: read_notes(home, holder) for holder in {intent.holder for intent in started}}
        if monotonic_ms() >= give_up_at_ms or not any(_may_end(notes[intent.holder], intent) for intent in started):
            return notes
        await asyncio.sleep(_POLL_S)


def _may_end(noted: Noted | None, intent: Intent) -> bool:
    """Whether a call's worker may still note how it ended; a call that may run again need not wait for that."""
    if noted is None or noted.whole or intent.idempotent or intent.result is not None:
        return False
    return noted_result(noted, intent) is None


def never_started(noted: Noted, intent: Intent) -> bool:
    """Return whether the notes prove that a call was never started."""
    return noted.whole and _name(intent.attempt, intent.idempotency_key) not in noted.started


def noted_result(noted: Noted, intent: Intent) -> ToolResult | None:
    """Return the noted result of a call, if any."""
    return noted.results.get(_name(intent.attempt, intent.idempotency_key))


def _name(attempt: int, key: str) -> str:
    return f"{attempt} {key}"


def _describe_machine() -> list[str]:
    """Return host name, boot and process namespace: within these, notes and process ids are comparable."""
    return [os.uname().nodename, boot_id(), os.readlink("/proc/self/ns/pid")]


def _is_alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return False
    return status.rpartition(") ")[2][:1] not in ("Z", "X")
