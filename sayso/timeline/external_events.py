"""Models for events of other systems, their size limits, and lenient readers for the JSON they come as."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json, parse_json
from sayso.core.records.base import Immutable
from sayso.errors import InvalidInput, SaysoError

MAX_BATCH_EVENTS = 500
_MAX_EVENT_BYTES = 60 * 1024
_MAX_TEXT_CHARS = 2000


def fit_events(events: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Truncate the events that are too long for the timeline."""
    return tuple(event if _fits(event) else _truncate(event) for event in events)


def _fits(event: JsonObject) -> bool:
    try:
        return len(canonical_json(event)) <= _MAX_EVENT_BYTES
    except SaysoError:
        return False


def _truncate(event: JsonObject) -> JsonObject:
    kept: JsonObject = {}
    for name, value in event.items():
        if isinstance(value, str):
            cut = f"{value[:_MAX_TEXT_CHARS]}… [cut: {len(value)} in all]"
            kept[name] = value if len(value) <= _MAX_TEXT_CHARS else cut
        elif value is None or isinstance(value, bool | int | float) or len(str(value)) <= _MAX_TEXT_CHARS:
            kept[name] = value
    return kept if _fits(kept) else {"type": str(event.get("type", ""))[:_MAX_TEXT_CHARS], "cut": True}


LATEST_MS = 253_402_300_799_000
"""The last second of the year 9999."""

_FRACTION = re.compile(r"(\.\d{1,6})\d*")


class Kind(StrEnum):
    """The kind of a timeline entry. Events of no other kind are `UNKNOWN` and shown whole."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    RESULT = "result"
    STEP = "step"
    QUIET = "quiet"
    WAIT = "wait"
    WARNING = "warning"
    PROBLEM = "problem"
    END = "end"
    UNKNOWN = "unknown"


class StoredEvent(Immutable):
    """An event as received, numbered within its source. `said_at_ms` is the time that the source states."""

    position: int
    source: str
    source_format: str
    seq: int
    at_ms: int
    said_at_ms: int | None = None
    event: JsonObject


@dataclass(frozen=True)
class Part:
    """What one event shows on the timeline, whole or as a fragment of message `key`; once for each `once`.

    A `link` is a URL that the agent asks its user to open.
    """

    kind: Kind
    text: str = ""
    note: str = ""
    who: str = ""
    name: str = ""
    call_id: str = ""
    key: str = ""
    whole: bool = True
    ok: bool | None = None
    data: JsonValue = None
    link: str = ""
    invocation: str = ""
    parent: str = ""
    once: str = ""
    at_ms: int | None = None


class Fields:
    """Typed access to a JSON object of unknown shape. A value of another type counts as missing."""

    def __init__(self, value: object) -> None:
        self.raw: Mapping[str, JsonValue] = value if isinstance(value, dict) else {}

    def text(self, *names: str) -> str:
        """Return the first non-empty text or number as text, or an empty string."""
        for name in names:
            value = self.raw.get(name)
            if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
                return str(value)
        return ""

    def flag(self, name: str) -> bool:
        return self.raw.get(name) is True

    def count(self, name: str) -> int:
        value = self.raw.get(name)
        return value if isinstance(value, int) else 0

    def value(self, name: str) -> JsonValue:
        return self.raw.get(name)

    def inner(self, name: str) -> "Fields":
        return Fields(self.raw.get(name))

    def rows(self, name: str) -> list["Fields"]:
        value = self.raw.get(name)
        return [Fields(row) for row in value if isinstance(row, dict)] if isinstance(value, list) else []

    def texts(self, name: str) -> list[str]:
        value = self.raw.get(name)
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def read_moment(text: str) -> int | None:
    """Return an RFC 3339 time in milliseconds, or None. A time without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", text))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        at_ms = round(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return at_ms if 0 <= at_ms <= LATEST_MS else None


def read_json(value: JsonValue) -> JsonValue:
    """Return the JSON in a text, or the text itself if it is not JSON. Return other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except InvalidInput:
        return value


def read_parts(readers: Mapping[str, Callable[..., Part | list[Part]]], kind: str, *given: Fields) -> list[Part]:
    """Return the parts of an event by the reader of its kind; without one, a part that shows the whole event."""
    parts = readers[kind](*given) if kind in readers else describe_unknown(given[0], kind)
    return [parts] if isinstance(parts, Part) else parts


def describe_unknown(fields: Fields, kind: str) -> Part:
    """Return a part that shows the whole event."""
    name = kind.replace("_", " ").strip()
    text = name[:1].upper() + name[1:] if name else "Event without a type"
    return Part(Kind.UNKNOWN, text[:200], data=dict(fields.raw))
