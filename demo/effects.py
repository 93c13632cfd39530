"""A log of what the demo's tools did, to check which calls ran and how often.

Each effect is a JSON line in `effects.jsonl` in the home. The file stands for the bank, the mail server and the booking
sites. The demo and the tests compare it with the run's timeline.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, JsonValue

FILE = "effects.jsonl"


class Effect(BaseModel):
    """One effect of a tool, and the call that caused it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    args: dict[str, JsonValue]
    run_id: str
    call_id: str
    idempotency_key: str
    pid: int


class Effects:
    """The effects of one home. Any number of processes can append at once."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def record(self, effect: Effect) -> None:
        """Append the effect, even repeatedly. For tools that are not idempotent."""
        with self._opened() as file:
            _append(file, effect)

    def record_once(self, effect: Effect) -> None:
        """Append the effect unless its idempotency key is known. For idempotent tools."""
        with self._opened() as file:
            file.seek(0)
            if all(known.idempotency_key != effect.idempotency_key for known in _read(file)):
                _append(file, effect)

    def read(self) -> tuple[Effect, ...]:
        if not self._path.exists():
            return ()
        with self._opened() as file:
            file.seek(0)
            return tuple(_read(file))

    @contextmanager
    def _opened(self) -> Iterator[TextIO]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _append(file: TextIO, effect: Effect) -> None:
    file.write(json.dumps(effect.model_dump()) + "\n")
    file.flush()
    os.fsync(file.fileno())


def _read(file: TextIO) -> Iterator[Effect]:
    return (Effect.model_validate_json(line) for line in file)
