"""The tools' evidence, written outside of Sayso: one line when a call starts, one when it ends.

A line is one write to a file opened for appending; no kill of a process can undo it. Lines are not flushed to disk,
because an experiment never cuts the power, and a flush would prolong every call.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

FILE = "effects.jsonl"


class EffectLine(BaseModel):
    """The start or the end of one execution; both have its id in `effect`."""

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
    """Return all lines in order."""
    if (home / FILE).exists():
        with (home / FILE).open(encoding="utf-8") as lines:
            yield from map(EffectLine.model_validate_json, lines)
