"""Reader for Sayso's own format: `type` and `data` as in a trail, with optional `who`, `invocation` and `parent`."""

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Part
from sayso.timeline.afk import SAYSO_READERS, read_with


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event."""
    return read_with(SAYSO_READERS, event)
