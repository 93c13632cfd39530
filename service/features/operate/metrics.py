"""The metrics of `/metrics`: those of this process, and those of the store."""

import asyncio
import hmac
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sayso import __version__
from sayso.core.clock import monotonic_ms
from sayso.core.records.suspensions import RunStatus
from sayso.errors import NotAllowed, NotAuthenticated, NotFound, Unavailable
from service.core.auth.credentials import is_monitor
from service.core.metrics import PROCESS
from service.core.operations.queue_store import count_live_workers
from service.core.settings import variable_of
from service.core.store.load import BOUNDS_MS, Delays, Memory, Messages, Overdue
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.schedule import Queue, is_behind
from service.core.wiring import Wiring
from service.edge.api.routes import OpenRoute, bearer_token, identify
from service.features.insights.store import Counters
from service.features.insights.totals import BOUNDS_S, TOOL_BOUNDS_S, Totals, TotalsStore
from service.features.operate.cards import CardCounts, count_cards
from service.features.operate.limits import find_limits

router = APIRouter(route_class=OpenRoute, include_in_schema=False)


@router.get("/metrics")
async def read_metrics(request: Request) -> Response:
    """Return the metrics of this process and of the store to the holder of the token, or of a monitoring key."""
    await _admit(request)
    readings: Readings = request.app.state.readings
    text, media_type = await render_metrics(readings, request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": media_type})


async def _admit(request: Request) -> None:
    expected, sent = request.app.state.process.settings.metrics_token, bearer_token(request)
    if sent is not None:
        if expected is not None and hmac.compare_digest(sent.encode(), expected.get_secret_value().encode()):
            return
        with suppress(NotAuthenticated, NotAllowed):
            if is_monitor(await identify(request)):
                return
    token = variable_of("metrics_token")
    if expected is None:
        raise NotFound(f"The metrics are closed. Set {token} to open them, or send a key with the scope monitor.")
    raise NotAuthenticated(f"Send the token of {token} as 'Authorization: Bearer …', or a key with the scope monitor.")


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
    starts: Delays
    unreadable: int
    lost: int
    forgetful: int
    silence_s: float  # since the last sign of a clock; infinite before the first
    limits: Mapping[str, float]
    memory: Memory
    totals: Totals


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
            workers=await count_live_workers(wiring),
            messages=await sizes.count_messages(),
            cards=self._cards[0],
            starts=await wiring.part(Counters).starts.read(),
            unreadable=len(await wiring.inspections.sample()),
            lost=sum(freeze.lost.commits for freeze in await wiring.freezes.in_force() if freeze.lost is not None),
            forgetful=await wiring.store.counts.count_forgetful(),
            silence_s=await _find_silence_s(wiring),
            limits={limit.name: limit.share for limit in await find_limits(wiring, queue)},
            memory=await sizes.read_memory(),
            totals=await wiring.part(TotalsStore).read(),
        )


async def _find_silence_s(wiring: Wiring) -> float:
    reading = await wiring.freezes.last_reading()
    return inf if reading is None else max(0, await wiring.schedule.now_ms() - reading.at_ms) / 1000


async def render_metrics(readings: Readings, accept: str) -> tuple[bytes, str]:
    """Return the page and its media type. Without the store it has this process's own metrics only."""
    try:
        reading = await readings.find()
    except Unavailable:
        reading = None
    encode, media_type = choose_encoder(accept)
    return encode(MetricsPage(reading, readings.are_rules_held())), media_type


class MetricsPage(Collector):
    """The metrics of the process, and those of the store if it was read."""

    def __init__(self, reading: Reading | None, rules_held: bool) -> None:
        self._reading, self._rules_held = reading, rules_held

    def collect(self) -> Iterator[Metric]:
        yield from PROCESS.collect()
        yield _by("sayso_build_info", "1, with the version of this service.", "version", {__version__: 1})
        yield _gauge("sayso_store_up", "1 while the store answers.", int(self._reading is not None))
        held = "1 while the rules file is invalid and its last valid rules stay in force."
        yield _gauge("sayso_rules_held", held, int(self._rules_held))
        if self._reading is not None:
            yield from _describe_metrics(self._reading)


def _describe_metrics(reading: Reading) -> Iterator[Metric]:
    queue, overdue = reading.queue, reading.overdue
    yield _gauge("sayso_backlog_runs", "Runs that are ready and that no worker has taken.", queue.runs)
    yield _gauge("sayso_backlog_oldest_seconds", "How long the first of them has waited.", queue.oldest_ms / 1000)
    yield _gauge("sayso_backlog_refusing", "1 while new work for workers is refused.", int(reading.refusing))
    starts, totals = reading.starts, reading.totals
    yield _histogram(
        "sayso_start_delay_seconds",
        "Time of runs on the ready list, until a worker took them.",
        [bound / 1000 for bound in BOUNDS_MS],
        {"": starts},
    )
    decided = "Time from the question to a person's decision."
    yield _histogram("sayso_decision_seconds", decided, BOUNDS_S, {"": totals.decisions})
    called = "Time of a call's tool; `replay` for a result that an earlier attempt saved."
    yield _histogram("sayso_tool_call_latency_seconds", called, TOOL_BOUNDS_S, totals.calls, "source")
    together = "Time of the calls that one turn ran together."
    yield _histogram("sayso_tool_batch_latency_seconds", together, TOOL_BOUNDS_S, totals.batches, "source")
    verdicts = "Calls that rules let run, asked about or denied."
    yield _by("sayso_verdicts", verdicts, "verdict", totals.verdicts, CounterMetricFamily)
    outcomes = "Items by how they ended; `fallback` when their time was over."
    yield _by("sayso_outcomes", outcomes, "outcome", totals.outcomes, CounterMetricFamily)
    yield _by("sayso_open_items", "Open items and active runs, as limits count them.", "age", reading.open_by_age)
    if reading.in_doubt is not None:
        yield _gauge("sayso_in_doubt_items", "Open items about a call that may have run.", reading.in_doubt)
    yield _gauge("sayso_overdue_suspensions", "Suspensions whose due time has passed.", overdue.total)
    yield _gauge(
        "sayso_overdue_oldest_seconds", "How long the first is due; over 5 s no clock runs.", overdue.since_ms / 1000
    )
    yield _by(
        "sayso_runs",
        "Runs that are kept, by status.",
        "status",
        {status.value: count for status, count in reading.runs.items()},
    )
    yield _gauge("sayso_workers", "Workers that are registered.", reading.workers)
    lost = "Commits that are gone since the store went back, until an admin unfreezes."
    yield _gauge("sayso_lost_commits", lost, reading.lost)
    yield _gauge("sayso_forgetful_processes", "Processes that cannot write their home.", reading.forgetful)
    yield _gauge("sayso_unreadable_records", "Stored records that this version cannot read.", reading.unreadable)
    yield _cards(reading)
    yield _gauge("sayso_clock_silence_seconds", "Time since the last sign of a clock.", reading.silence_s)
    yield _by("sayso_limit_used_ratio", "Share of a limit that is used; 1 refuses.", "limit", reading.limits)
    yield _gauge("sayso_store_memory_bytes", "Memory that the store uses.", reading.memory.used)
    yield _gauge("sayso_store_memory_limit_bytes", "Its maxmemory; 0 for none.", reading.memory.limit)
    messages = {"queued": reading.messages.queued, "failed": reading.messages.failed}
    yield _by("sayso_webhook_messages", "Signed messages, by state.", "state", messages)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by(
    name: str,
    text: str,
    label: str,
    values: Mapping[str, float],
    kind: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily,
) -> Metric:
    family = kind(name, text, labels=(label,))
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _histogram(name: str, text: str, bounds_s: Sequence[float], by: Mapping[str, Delays], label: str = "") -> Metric:
    """Return the delays by the values of a label; without a label it is the empty text."""
    family = HistogramMetricFamily(name, text, labels=(label,) if label else ())
    for value, delays in by.items():
        counts = zip((f"{bound:g}" for bound in bounds_s), map(float, delays.within), strict=True)
        buckets = [*counts, ("+Inf", float(delays.total))]
        family.add_metric((value,) if label else (), buckets, delays.sum_ms / 1000)
    return family


def _cards(reading: Reading) -> Metric:
    family = GaugeMetricFamily(
        "sayso_cards", "Deliveries, of the 500 suspensions due first.", labels=("channel", "state")
    )
    for channel, counts in reading.cards.items():
        states: Mapping[str, int] = {"queued": counts.queued, "failed": counts.failed}
        for state, count in states.items():
            family.add_metric([channel, state], count)
    return family
