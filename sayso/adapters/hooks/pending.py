"""Calls that wait: a hook that asks about the same call again continues with the same item."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sayso.core.canonical_json import digest_json
from sayso.core.clock import now_ms

_KEPT_S = 30 * 24 * 3600  # the time after which the file of a call that nobody repeated is removed


def claim_end(*run: str, call_id: str) -> bool:
    """Return whether this call ends the run. A run ends with one call: of two, Claude Code forgets the first."""
    file = PendingFile.find("end", *run).file
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError), file.open("x", encoding="utf-8") as claim:
            claim.write(call_id)
            return True
        return file.read_text(encoding="utf-8") == call_id
    return False


class Pending(NamedTuple):
    """What a call was asked with: its idempotency key, and the title that reviewers read."""

    key: str
    title: str


@dataclass(frozen=True)
class PendingFile:
    """The file of one call of a session. Without it, only a call with the same id continues."""

    file: Path

    @classmethod
    def find(cls, *call: str) -> "PendingFile":
        """Return the file of a call, below `XDG_STATE_HOME`, or `~/.local/state`."""
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        return cls(home / "sayso" / "hooks" / digest_json([*call])[-32:])

    def read(self) -> Pending | None:
        """Return what the call was asked with, or None if it does not wait."""
        with suppress(OSError, ValueError, TypeError):
            return Pending(*map(str, json.loads(self.file.read_text(encoding="utf-8"))))
        return None

    def save(self, pending: Pending) -> None:
        """Keep the key before the desk is asked, so that it outlives this process."""
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self.file.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(pending), encoding="utf-8")
            fresh.replace(self.file)
            self._remove_old()

    def forget(self) -> None:
        """Remove the file of a call that has its answer."""
        with suppress(OSError):
            self.file.unlink(missing_ok=True)

    def _remove_old(self) -> None:
        before_s = now_ms() / 1000 - _KEPT_S
        for file in self.file.parent.iterdir():
            with suppress(OSError):
                if file.stat().st_mtime < before_s:
                    file.unlink()
