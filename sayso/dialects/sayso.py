"""Read our own events: `type` and `data` as in a run's trail, with `who`, `invocation` and `parent` where they help."""

from sayso.decisions import JsonObject
from sayso.dialects.afk import OUR_TELLERS, read_with
from sayso.dialects.pieces import Piece


def read(event: JsonObject) -> tuple[Piece, ...]:
    """Return what the event shows."""
    return read_with(OUR_TELLERS, event)
