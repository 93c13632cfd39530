"""Leave word on this machine of which calls a worker starts and how they end, for whoever comes after it was killed.

A process that is killed takes its memory along, but not what it has handed to the operating system. So these notes
need no waiting for a disk, and shorten the doubt about a call from a commit's time to the call itself. They are
believed only where they must be whole: the machine has not been started anew, and the process that wrote them is gone.
In every other case nothing is known, and a person is asked.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from sayso.batches import is_small
from sayso.clock import now_ms
from sayso.suspensions import Intent
from sayso.tool_calls import ToolResult

FOLDER = "notes"
_KEPT_MS = 7 * 86_400_000

log = structlog.get_logger()
_kept: dict[str, "Notes"] = {}
"""The notes of the workers in this process, by their names."""


@dataclass(frozen=True)
class Left:
    """What a worker that is gone has left word of: the calls it started, and the results of those that ended."""

    started: frozenset[str] = frozenset()
    results: Mapping[str, ToolResult] = field(default_factory=dict)


class Notes:
    """One worker's notes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._write({"machine": _describe_machine(), "pid": os.getpid()})

    def note_start(self, intent: Intent) -> None:
        """Write that a call starts; to be called right before it does. What this raises keeps it from starting."""
        self._write({"started": _name(intent)})

    def note_end(self, intent: Intent, result: ToolResult) -> None:
        """Write how a call ended, unless that is large: then there is only the doubt."""
        if is_small(result):
            self._write({"ended": _name(intent), "result": result.model_dump(mode="json")})

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
    """Return what a worker left word of, or None when nothing can be known: it may still live, or elsewhere."""
    try:
        head, *lines = (home / FOLDER / holder).read_text(encoding="utf-8").splitlines()
        about = json.loads(head)
        if about["machine"] != _describe_machine() or _is_alive(about["pid"]):
            return None
        notes = [json.loads(line) for line in lines]
    except (OSError, ValueError, KeyError):
        return None
    return Left(
        started=frozenset(note["started"] for note in notes if "started" in note),
        results={note["ended"]: ToolResult.model_validate(note["result"]) for note in notes if "ended" in note},
    )


def has_started(left: Left, intent: Intent) -> bool:
    """Return whether a call was started, by what its worker left word of."""
    return _name(intent) in left.started


def result_of(left: Left, intent: Intent) -> ToolResult | None:
    """Return how a call ended, by what its worker left word of."""
    return left.results.get(_name(intent))


def _name(intent: Intent) -> str:
    return f"{intent.attempt} {intent.idempotency_key}"


def _describe_machine() -> list[str]:
    """What makes unwritten files whole and process numbers comparable. Raises `OSError` where there is no telling."""
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
