"""The metrics in the text format that Prometheus reads: this process's own, and one reading of the store."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sayso.core.clock import monotonic_ms
from sayso.core.records.suspensions import RunStatus
from sayso.errors import Unavailable
from service.core.jobs import count_workers
from service.core.metrics import PROCESS
from service.core.store.load import BOUNDS_MS, Messages, Overdue, StartDelays
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.schedule import Queue, is_behind
from service.core.wiring import Wiring
from service.features.insights.store import Counters
from service.features.operate.diagnostics import CardCounts, count_cards

MOST_SUSPENSIONS = 500
"""The suspensions, by their deadline, whose deliveries a reading counts; reading a record costs most."""

KEPT_MS = 1_000
CARDS_KEPT_MS = 30_000
OTHER = "other"


class Reading(NamedTuple):
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
        if self._cards is None or monotonic_ms() - self._cards[1] > CARDS_KEPT_MS:
            counts = {name: CardCounts() for name in self._channels}
            for name, count in (await count_cards(self._wiring, MOST_SUSPENSIONS)).items():
                total = counts.setdefault(name if name in self._channels else OTHER, CardCounts())
                total.queued, total.failed = total.queued + count.queued, total.failed + count.failed
            self._cards = (counts, monotonic_ms())
        return Reading(
            queue=queue,
            refusing=is_behind(queue, wiring.settings),
            open_by_age=await sizes.count_open(),
            in_doubt=None if buckets is None else sum(bucket.size for bucket in buckets if bucket.facets.doubt),
            overdue=await sizes.find_overdue(),
            runs=await sizes.count_runs(),
            workers=await asyncio.to_thread(count_workers, wiring.settings.store_url),
            messages=await sizes.count_messages(),
            cards=self._cards[0],
            starts=await wiring.part(Counters).starts.read(),
            unreadable=len(await wiring.inspections.sample()),
        )


async def render_metrics(readings: Readings, accept: str) -> tuple[bytes, str]:
    """Return the page and its media type. Without the store it has this process's own metrics only."""
    try:
        reading = await readings.find()
    except Unavailable:
        reading = None
    encode, media_type = choose_encoder(accept)
    return encode(_Page(reading, readings.are_rules_held())), media_type


class _Page(Collector):
    def __init__(self, reading: Reading | None, rules_held: bool) -> None:
        self._reading, self._rules_held = reading, rules_held

    def collect(self) -> Iterator[Metric]:
        yield from PROCESS.collect()
        yield _gauge("sayso_store_up", "1 while the store answers.", int(self._reading is not None))
        held = "1 while the rules file is invalid and its last valid rules stay in force."
        yield _gauge("sayso_rules_held", held, int(self._rules_held))
        if self._reading is not None:
            yield from _describe(self._reading)


def _describe(reading: Reading) -> Iterator[Metric]:
    queue, overdue = reading.queue, reading.overdue
    yield _gauge("sayso_backlog_runs", "Runs that are ready and that no worker has taken.", queue.runs)
    yield _gauge("sayso_backlog_oldest_seconds", "How long the first of them has waited.", queue.oldest_ms / 1000)
    yield _gauge("sayso_backlog_refusing", "1 while new work for workers is refused.", int(reading.refusing))
    bounds = [f"{bound / 1000:g}" for bound in BOUNDS_MS]
    buckets = [*zip(bounds, map(float, reading.starts.within), strict=True), ("+Inf", float(reading.starts.total))]
    yield HistogramMetricFamily(
        "sayso_start_delay_seconds",
        "Time of runs on the ready list, until a worker took them.",
        buckets=buckets,
        sum_value=reading.starts.sum_ms / 1000,
    )
    yield _by("sayso_open_items", "Open items and active runs, by age.", "age", reading.open_by_age.items())
    if reading.in_doubt is not None:
        yield _gauge("sayso_in_doubt_items", "Open items about a call that may have run.", reading.in_doubt)
    yield _gauge("sayso_overdue_suspensions", "Suspensions whose due time has passed.", overdue.total)
    yield _gauge("sayso_overdue_oldest_seconds", "How long the first of them is due.", overdue.since_ms / 1000)
    runs = [(status.value, count) for status, count in reading.runs.items()]
    yield _by("sayso_runs", "Runs that are kept, by status.", "status", runs)
    yield _gauge("sayso_workers", "Workers that are registered.", reading.workers)
    yield _gauge("sayso_unreadable_records", "Stored records that this version cannot read.", reading.unreadable)
    yield _cards(reading)
    messages = {"queued": reading.messages.queued, "failed": reading.messages.failed}
    yield _by("sayso_webhook_messages", "Signed messages, by state.", "state", messages.items())


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by(name: str, text: str, label: str, values: Iterable[tuple[str, int]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for value, count in values:
        family.add_metric([value], count)
    return family


def _cards(reading: Reading) -> Metric:
    family = GaugeMetricFamily("sayso_cards", "Deliveries of cards to reviewers.", labels=("channel", "state"))
    for channel, counts in reading.cards.items():
        states: Mapping[str, int] = {"queued": counts.queued, "failed": counts.failed}
        for state, count in states.items():
            family.add_metric([channel, state], count)
    return family
