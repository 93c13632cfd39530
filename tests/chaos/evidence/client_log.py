"""The clients' evidence: every request with its answer, or without one, as JSON lines."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.core.canonical_json import JsonObject

FILE = "client.jsonl"
_KEPT = ("id", "status", "outcome", "decision", "type", "detail", "error_id")


class Exchange(BaseModel):
    """One request of one client for one planned run; without a status the reply was lost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["start", "decide", "cancel", "view"]
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
    def confirmed(self) -> bool:
        """Whether the answer confirms the request."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """Whether the answer refuses the request for good."""
        return self.status is not None and 400 <= self.status < 500 and self.status != 429


class ClientLog:
    """Appends to the log during an experiment."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / FILE).open("a", encoding="utf-8")

    def write(self, exchange: Exchange) -> None:
        """Add one line."""
        self._file.write(exchange.model_dump_json(exclude_defaults=True) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_log(folder: Path) -> Iterator[Exchange]:
    """Return all exchanges in the order of their answers."""
    with (folder / FILE).open(encoding="utf-8") as lines:
        yield from map(Exchange.model_validate_json, lines)


def parse_ms(text: str) -> int:
    """Return an RFC 3339 time as milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def shorten(answer: str) -> JsonValue:
    """Return the parts of an answer that are evidence: ids, outcomes and refusals."""
    try:
        parsed: JsonValue = json.loads(answer)
    except ValueError:
        return answer[:500]
    return {name: parsed[name] for name in _KEPT if name in parsed} if isinstance(parsed, dict) else parsed
