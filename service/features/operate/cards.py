"""Counts of deliveries to people, for the diagnostics and the metrics."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.deadlines import describe_span
from sayso.core.transitions.deliveries import is_live
from service.core.store.suspensions.reading import split_readable
from service.core.wiring import Wiring

SLOW_MS = 60_000  # queued for longer, a delivery shows that no process delivers cards, or that its provider is slow
_AT_ONCE = 100


@dataclass
class CardCounts:
    """The deliveries of one channel to people whose decision is still open."""

    queued: int = 0
    sent: int = 0
    failed: int = 0
    oldest_queued_at_ms: int | None = None  # for a card that is held, the end of the hold
    reason: str = ""

    def add(self, record: SuspensionRecord, delivery: CardDelivery) -> None:
        if delivery.state is DeliveryState.FAILED:
            self.failed += 1
            self.reason = delivery.reason or self.reason
        elif delivery.proven:
            self.sent += 1
        else:
            self.queued += 1
            at_ms = max(record.updated_at_ms if delivery.step else record.created_at_ms, delivery.next_try_at_ms or 0)
            self.oldest_queued_at_ms = min(at_ms, self.oldest_queued_at_ms or at_ms)

    def describe(self, now_ms: int) -> str:
        text = f"{self.queued} queued, {self.sent} sent, {self.failed} failed"
        if self.oldest_queued_at_ms is not None and self.oldest_queued_at_ms <= now_ms:
            text += f"; the oldest is queued for {describe_span(now_ms - self.oldest_queued_at_ms)}"
        return f"{text}. The last failure: {self.reason}" if self.reason else f"{text}."

    def is_slow(self, now_ms: int) -> bool:
        return self.oldest_queued_at_ms is not None and now_ms - self.oldest_queued_at_ms > SLOW_MS


async def count_cards(wiring: Wiring, most: int = 5_000) -> dict[str, CardCounts]:
    """Return the counts of each channel that waiting items name, in the `most` suspensions that are due first."""
    counts: dict[str, CardCounts] = {}
    async for record in _list_waiting(wiring, most):
        for item in record.items:
            for delivery in item.deliveries if is_live(record, item) else ():
                counts.setdefault(delivery.channel, CardCounts()).add(record, delivery)
    return counts


async def _list_waiting(wiring: Wiring, most: int) -> AsyncIterator[SuspensionRecord]:
    for skip in range(0, most, _AT_ONCE):
        ids = await wiring.runs.inbox(skip, _AT_ONCE)
        readable, _ = split_readable(await wiring.desk.suspensions.read_page(ids))
        for record in readable:
            yield record
        if len(ids) < _AT_ONCE:
            return
