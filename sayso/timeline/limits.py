"""Make what a framework said on the way short enough to be told."""

from collections.abc import Iterable

from sayso.canonical_json import JsonObject, canonical_json
from sayso.errors import SaysoError

MOST_AT_ONCE = 500
_LONGEST_BYTES = 60 * 1024
_KEPT_CHARS = 2000


def fit_events(events: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Return the events, each of those that are too long for the timeline with its long values cut."""
    return tuple(one if _fits(one) else _cut(one) for one in events)


def _fits(event: JsonObject) -> bool:
    try:
        return len(canonical_json(event)) <= _LONGEST_BYTES
    except SaysoError:
        return False


def _cut(event: JsonObject) -> JsonObject:
    """Keep what is short, and the beginning of what is long text; the rest of a long event is left out."""
    kept: JsonObject = {}
    for name, value in event.items():
        if isinstance(value, str):
            kept[name] = value if len(value) <= _KEPT_CHARS else f"{value[:_KEPT_CHARS]}… [cut: {len(value)} in all]"
        elif value is None or isinstance(value, bool | int | float) or len(str(value)) <= _KEPT_CHARS:
            kept[name] = value
    return kept if _fits(kept) else {"type": str(event.get("type", ""))[:_KEPT_CHARS], "cut": True}
