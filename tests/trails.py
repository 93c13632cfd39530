"""Make trails as the store keeps them."""

from sayso.core.records.chain import write_events
from sayso.core.records.events import Event, TrailEntry, TrailHead


def append_events(head: TrailHead, events: tuple[Event, ...], at_ms: int) -> tuple[TrailHead, list[TrailEntry]]:
    """The entries that `events` become behind `head`, read back, and the new head."""
    head, written = write_events(head, events, at_ms)
    return head, [TrailEntry.model_validate_json(one) for one in written]
