"""Write down what the demo's tools did to the world, so that anybody can check what ran, and how often.

One JSON line an effect in `effects.jsonl` in the home. The file stands for the bank, the mail server and the booking
sites: it is the ground truth that the demo and the tests compare the run's timeline with.
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
    """Something a tool did, and on whose behalf."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    args: dict[str, JsonValue]
    run_id: str
    call_id: str
    idempotency_key: str
    pid: int


class Effects:
    """The effects of one home, appended to by any number of processes at once."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def record(self, effect: Effect) -> None:
        """Do it, again if asked again: this is a tool that is not idempotent."""
        with self._opened() as file:
            _append(file, effect)

    def record_once(self, effect: Effect) -> None:
        """Do it unless the same idempotency key was seen before: this is a tool that is."""
        with self._opened() as file:
            file.seek(0)
            if all(done.idempotency_key != effect.idempotency_key for done in _read(file)):
                _append(file, effect)

    def read(self) -> tuple[Effect, ...]:
        """Return everything that was done, in order."""
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
