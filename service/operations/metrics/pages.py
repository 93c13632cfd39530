"""The page of metrics in the text format that Prometheus reads: this process's own, and a reading of the store."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sayso.errors import Unavailable
from service.metrics import PROCESS
from service.operations.metrics.readings import Reading, Readings
from service.store.load.starts import BOUNDS_MS


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
    yield _start_delays(reading)
    yield _by("sayso_open_items", "Open items and active runs, by age.", "age", reading.open_by_age.items())
    if reading.in_doubt is not None:
        yield _gauge("sayso_in_doubt_items", "Open items about a call that may have run.", reading.in_doubt)
    yield _gauge("sayso_overdue_suspensions", "Suspensions whose due time has passed.", overdue.total)
    yield _gauge("sayso_overdue_oldest_seconds", "How long the first of them is due.", overdue.since_ms / 1000)
    yield _by("sayso_runs", "Runs that are kept, by status.", "status", _named(reading))
    yield _gauge("sayso_workers", "Workers that are registered.", reading.workers)
    yield _gauge("sayso_unreadable_records", "Stored records that this version cannot read.", reading.unreadable)
    yield _cards(reading)
    messages = {"queued": reading.messages.queued, "failed": reading.messages.failed}
    yield _by("sayso_webhook_messages", "Signed messages, by state.", "state", messages.items())


def _named(reading: Reading) -> Iterable[tuple[str, int]]:
    return ((status.value, count) for status, count in reading.runs.items())


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


def _start_delays(reading: Reading) -> Metric:
    bounds = [f"{bound / 1000:g}" for bound in BOUNDS_MS]
    buckets = [*zip(bounds, map(float, reading.starts.within), strict=True), ("+Inf", float(reading.starts.total))]
    return HistogramMetricFamily(
        "sayso_start_delay_seconds",
        "Time of runs on the ready list, until a worker took them.",
        buckets=buckets,
        sum_value=reading.starts.sum_ms / 1000,
    )
