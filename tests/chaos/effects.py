"""Write down outside of Sayso what its tools really did: a line when a call starts, another when it has ended.

The file is the ground truth of a storm. A line is one write to a file opened for appending: what the operating system
has, no kill of a process can take back. It need not wait for the disk, for no storm takes the machine's power; and that
wait would make every call longer, of which it is then in doubt whether it was cut off.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

FILE = "effects.jsonl"


class EffectLine(BaseModel):
    """One start or end of one call; both carry the id of this very execution."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: Literal["start", "end"]
    at_ms: int
    effect: str
    run_id: str
    call_id: str
    tool: str
    key: str
    digest: str
    attempt: int
    pid: int


def write_effect(home: Path, line: EffectLine) -> None:
    """Append the line."""
    os.write(_open(home), line.model_dump_json().encode() + b"\n")


@cache
def _open(home: Path) -> int:
    return os.open(home / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def read_effects(home: Path) -> Iterator[EffectLine]:
    """Return everything that was written, in order."""
    if (home / FILE).exists():
        with (home / FILE).open(encoding="utf-8") as lines:
            yield from map(EffectLine.model_validate_json, lines)
