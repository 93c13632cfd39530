"""One reading of the store for the page of metrics."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from sayso.core.clock import monotonic_ms
from sayso.core.records.suspensions import RunStatus
from service.jobs import count_workers
from service.operations.card_counts import CardCounts, count_cards
from service.store.inbox.buckets import Buckets
from service.store.insights.counters import Counters
from service.store.load.backlog import is_behind
from service.store.load.sizes import Messages, Overdue
from service.store.load.starts import StartDelays
from service.store.suspensions.schedule import Queue
from service.wiring import Wiring

MOST_SUSPENSIONS = 500
"""The suspensions, by their deadline, whose deliveries a reading counts; reading a record costs most."""

KEPT_MS = 1_000
CARDS_KEPT_MS = 30_000
OTHER = "other"


@dataclass(frozen=True)
class Reading:
    """What the store holds; `in_doubt` is None where an agent named too many tools to count them."""

    queue: Queue
    refusing: bool
    open_by_age: dict[str, int]
    in_doubt: int | None
    overdue: Overdue
    runs: dict[RunStatus, int]
    workers: int
    messages: Messages
    cards: dict[str, CardCounts]
    starts: StartDelays
    unreadable: int = 0


class Readings:
    """Reads the store at most once a second, and deliveries every 30 s, however often the page is read."""

    def __init__(self, wiring: Wiring, channels: Collection[str]) -> None:
        self._wiring, self._channels = wiring, channels
        self._lock = asyncio.Lock()
        self._held: tuple[Reading, float] | None = None
        self._cards: tuple[dict[str, CardCounts], float] | None = None

    async def find(self) -> Reading:
        """Return a reading of the last second; raises `Unavailable`."""
        async with self._lock:
            if self._held is None or monotonic_ms() - self._held[1] > KEPT_MS:
                self._held = (await self._read(), monotonic_ms())
            return self._held[0]

    def are_rules_held(self) -> bool:
        return self._wiring.rulebook.is_held()

    async def _read(self) -> Reading:
        wiring, sizes = self._wiring, self._wiring.schedule.sizes
        buckets = await wiring.part(Buckets).read()
        queue = await wiring.schedule.read_queue()
        return Reading(
            queue=queue,
            refusing=is_behind(queue, wiring.settings),
            open_by_age=await sizes.count_open(),
            in_doubt=None if buckets is None else sum(bucket.size for bucket in buckets if bucket.facets.doubt),
            overdue=await sizes.find_overdue(),
            runs=await sizes.count_runs(),
            workers=await asyncio.to_thread(count_workers, wiring.settings.store_url),
            messages=await sizes.count_messages(),
            cards=await self._find_cards(),
            starts=await wiring.part(Counters).starts.read(),
            unreadable=len(await wiring.inspections.sample()),
        )

    async def _find_cards(self) -> dict[str, CardCounts]:
        """Return the deliveries of each configured channel; all others, which rules or old items name, are one."""
        if self._cards is None or monotonic_ms() - self._cards[1] > CARDS_KEPT_MS:
            counts = {name: CardCounts() for name in self._channels}
            for name, count in (await count_cards(self._wiring, MOST_SUSPENSIONS)).items():
                total = counts.setdefault(name if name in self._channels else OTHER, CardCounts())
                total.queued, total.failed = total.queued + count.queued, total.failed + count.failed
            self._cards = (counts, monotonic_ms())
        return self._cards[0]
