"""Read our own events: `type` and `data` as in a run's trail, with `who`, `invocation` and `parent` where they help."""

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Piece
from sayso.timeline.afk import OUR_TELLERS, read_with


def read(event: JsonObject) -> tuple[Piece, ...]:
    """Return what the event shows."""
    return read_with(OUR_TELLERS, event)
