"""Say what an event of any dialect is made of, and read objects that others wrote with care."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, parse_json
from sayso.errors import InvalidInput
from sayso.records.base import Immutable

LATEST_MS = 253_402_300_799_000
"""The last second of the year 9999."""

_FRACTION = re.compile(r"(\.\d{1,6})\d*")


class Kind(StrEnum):
    """What an event shows; whatever fits nowhere else is unknown, and is shown whole."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    RESULT = "result"
    STEP = "step"
    QUIET = "quiet"
    PAUSE = "pause"
    WARNING = "warning"
    PROBLEM = "problem"
    END = "end"
    UNKNOWN = "unknown"


class Kept(Immutable):
    """One event as it came: its number among those of its source, when it was received, when it says it happened."""

    position: int
    source: str
    source_format: str
    seq: int
    at_ms: int
    said_at_ms: int | None = None
    event: JsonObject


@dataclass(frozen=True)
class Piece:
    """What one event shows. A piece that is not `whole` is a fragment: of the message `key`, or of a call's output.

    `once` names what may be told more than once, such as a message that is first streamed and then part of an answer.
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
    invocation: str = ""
    parent: str = ""
    once: str = ""
    at_ms: int | None = None


class Fields:
    """An object that somebody else wrote: what is not of the expected kind is as if it were not there."""

    def __init__(self, value: object) -> None:
        self.raw: Mapping[str, JsonValue] = value if isinstance(value, dict) else {}

    def word(self, *names: str) -> str:
        """Return the first of these that is a text or a number, written out; empty without one."""
        for name in names:
            value = self.raw.get(name)
            if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
                return str(value)
        return ""

    def true(self, name: str) -> bool:
        """Tell whether a flag is set."""
        return self.raw.get(name) is True

    def count(self, name: str) -> int:
        """Return a whole number, 0 without one."""
        value = self.raw.get(name)
        return value if isinstance(value, int) else 0

    def value(self, name: str) -> JsonValue:
        """Return whatever is there."""
        return self.raw.get(name)

    def inner(self, name: str) -> "Fields":
        """Return the object inside."""
        return Fields(self.raw.get(name))

    def rows(self, name: str) -> list["Fields"]:
        """Return the objects of a list."""
        value = self.raw.get(name)
        return [Fields(one) for one in value if isinstance(one, dict)] if isinstance(value, list) else []

    def words(self, name: str) -> list[str]:
        """Return the texts of a list."""
        value = self.raw.get(name)
        return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def read_moment(text: str) -> int | None:
    """Return a moment in RFC 3339 in milliseconds, or None for anything else; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", text))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        at_ms = round(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return at_ms if 0 <= at_ms <= LATEST_MS else None


def read_json(value: JsonValue) -> JsonValue:
    """Return the JSON in a text, or the text itself where it is none; anything else is already read."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except InvalidInput:
        return value


def describe_unknown(fields: Fields, kind: str) -> Piece:
    """Return an event that nobody knows, whole."""
    name = kind.replace("_", " ").strip()
    text = name[:1].upper() + name[1:] if name else "An event without a kind"
    return Piece(Kind.UNKNOWN, text[:200], data=dict(fields.raw))
