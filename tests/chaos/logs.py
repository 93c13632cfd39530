"""Keep the client's side of a storm: every request with its answer or that none came, one JSON line each."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.canonical_json import JsonObject

FILE = "client.jsonl"
_KEPT = ("id", "status", "outcome", "decision", "type", "detail", "error_id")


class Said(BaseModel):
    """One request of one client in the name of one planned run; a status of None means that no reply came."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["start", "decide", "cancel", "see"]
    run: int
    at_ms: int
    done_ms: int
    actor: str
    key: str | None = None
    run_id: str | None = None
    suspension_id: str | None = None
    item_id: str | None = None
    body: JsonObject = Field(default_factory=dict)
    status: int | None
    answer: JsonValue = None

    @property
    def done(self) -> bool:
        """Whether it was answered that what was asked for is done."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """Whether it was answered, for good, that it will not be done."""
        return self.status is not None and 400 <= self.status < 500 and self.status != 429


class ClientLog:
    """The log while the storm goes on."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / FILE).open("a", encoding="utf-8")

    def write(self, said: Said) -> None:
        """Add one line."""
        self._file.write(said.model_dump_json(exclude_defaults=True) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_log(folder: Path) -> Iterator[Said]:
    """Return everything that was said, in the order in which the answers came."""
    with (folder / FILE).open(encoding="utf-8") as lines:
        yield from map(Said.model_validate_json, lines)


def read_moment(text: str) -> int:
    """Return the milliseconds since 1970 of a moment as the API writes it."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def shorten(answer: str) -> JsonValue:
    """Return what of an answer is evidence: ids, outcomes and refusals, not what was sent anyway."""
    try:
        parsed: JsonValue = json.loads(answer)
    except ValueError:
        return answer[:500]
    return {name: parsed[name] for name in _KEPT if name in parsed} if isinstance(parsed, dict) else parsed
