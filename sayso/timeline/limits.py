"""Size limits of external events."""

from collections.abc import Iterable

from sayso.canonical_json import JsonObject, canonical_json
from sayso.errors import SaysoError

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
