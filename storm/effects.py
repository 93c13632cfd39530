"""Write down outside of Sayso what its tools really did: a line when a call starts, another when it has ended.

The file is the ground truth of a storm. A line is one write to a file opened for appending, and on the disk before the
tool goes on, so that no kill can take it back.
"""

import os
from collections.abc import Iterator
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
    """Append the line and return when it is on the disk."""
    file = os.open(home / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.model_dump_json().encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def read_effects(home: Path) -> Iterator[EffectLine]:
    """Return everything that was written, in order."""
    if (home / FILE).exists():
        with (home / FILE).open(encoding="utf-8") as lines:
            yield from map(EffectLine.model_validate_json, lines)
