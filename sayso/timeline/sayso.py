"""Reader for Sayso's own format: `type` and `data` as in a trail, with optional `who`, `invocation` and `parent`."""

from sayso.core.canonical_json import JsonObject
from sayso.timeline.afk import SAYSO_READERS, read_with
from sayso.timeline.external_events import Part


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of an event."""
    return read_with(SAYSO_READERS, event)
