"""What was decided today, for an inbox with nothing left to decide."""

from collections.abc import Iterable
from statistics import median_low

from sayso.core.clock import DAY_MS
from sayso.core.records.decisions import ActorKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.times import describe_span
from sayso.core.text.language import _


def describe_finished(records: Iterable[SuspensionRecord], now_ms: int, *, cut: bool) -> str:
    """Return how many items people decided since midnight UTC and how long they waited; empty for none."""
    midnight_ms = now_ms // DAY_MS * DAY_MS
    waits = [
        item.outcome.at_ms - record.created_at_ms
        for record in records
        for item in record.items
        if item.outcome is not None and item.outcome.by.kind is ActorKind.HUMAN and item.outcome.at_ms >= midnight_ms
    ]
    if not waits:
        return ""
    median = describe_span(median_low(waits))
    return _("%(count)s decided today, median %(span)s.", count=f"{len(waits)}{'+' if cut else ''}", span=median)
