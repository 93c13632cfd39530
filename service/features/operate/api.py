"""Routes of the activity log, the channels, checks of this Sayso and its rules, and the metrics."""

import asyncio
import hmac
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Path, Request, Response
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from pydantic import ConfigDict, Field

from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.policy.files.findings import Known
from sayso.core.records.suspensions import RunStatus
from sayso.errors import NotAuthenticated, NotFound, Unavailable
from sayso.wire.administration import ActivityList, ActivityView, FindingList, FindingView, RulesChecked
from sayso.wire.channels import AnswerList, AnswerView, ChannelList, ChannelView, SettingView
from sayso.wire.models import ListFiles, RequestBody
from service.channels.previews import send_test_card
from service.core.jobs import count_workers
from service.core.metrics import PROCESS
from service.core.operations.known_names import find_known
from service.core.settings import variable_of
from service.core.store.load import BOUNDS_MS, Messages, Overdue, StartDelays
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.schedule import Queue, is_behind
from service.core.wiring import Wiring
from service.edge.api.dependencies import Caller, Limit, OpenChannels, Parts, Person, Skip
from service.edge.api.routes import OpenRoute, SignedInRoute, bearer_token
from service.edge.http.openapi import problems
from service.features.insights.store import Counters
from service.features.operate.diagnostics import CardCounts, count_cards, diagnose

activity = APIRouter(prefix="/activity", tags=["activity"], route_class=SignedInRoute)


@activity.get("", operation_id="listActivity", responses=problems(401, 403))
async def list_activity(caller: Person, parts: Parts, skip: Skip = 0, limit: Limit = 50) -> ActivityList:
    """List what people did and what was refused, the newest first: sign-ins, keys, people, freezes, rules and more."""
    page = await parts.activity.read_page(skip, limit + 1)
    more = len(page.entries) > limit
    return ActivityList(
        activity=[ActivityView.model_validate(entry) for entry in page.entries[:limit]],
        next_skip=skip + limit if more else None,
        broken_at=page.broken_at,
    )


channels = APIRouter(prefix="/channels", tags=["channels"], route_class=SignedInRoute)

ChannelName = Annotated[str, Path(min_length=1, max_length=40, examples=["ops-slack"])]


class TrialRequest(RequestBody):
    """The receiver of a test card."""

    person: str = Field(
        default="",
        max_length=64,
        description="A reviewer with an address on the channel; empty for the channel's own destination.",
        examples=["anna"],
    )


@channels.get("", operation_id="listChannels", responses=problems(401, 403))
async def list_channels(_caller: Person, channels: OpenChannels) -> ChannelList:
    """List the configured channels, without their secrets."""
    return ChannelList(
        channels=[
            ChannelView(
                name=name,
                kind=channel.kind,
                destination=channel.destination,
                settings=tuple(map(SettingView.model_validate, settings)),
            )
            for name, channel, settings in channels.list_settings()
        ]
    )


@channels.post("/{channel}/test", operation_id="testChannel", responses=problems(400, 401, 403, 404, 415, 429))
async def send_test(
    channel: ChannelName, body: TrialRequest, caller: Person, parts: Parts, channels: OpenChannels
) -> AnswerList:
    """Send a test card to a person. It asks nobody and has no control that decides."""
    answers = await send_test_card(parts, channels, channel, body.person, caller.name)
    return AnswerList(answers=[AnswerView.model_validate(answer) for answer in answers])


diagnostics = APIRouter(tags=["health"], route_class=SignedInRoute)


class RulesRequest(RequestBody):
    """The text of a rules file."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "version: 1\ndefault: deny\nrules: []\n"}]})

    text: str
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    lists: ListFiles = Field(default_factory=dict)


@diagnostics.get("/diagnostics", operation_id="getDiagnostics", responses=problems(401, 403))
async def diagnose_parts(_caller: Person, parts: Parts, channels: OpenChannels) -> FindingList:
    """Check the store, the clock, the workers, the rules and the channels; for people."""
    kinds = {name: channel.kind for name, channel in channels.by_name.items()}
    return FindingList(findings=[FindingView.model_validate(finding) async for finding in diagnose(parts, kinds)])


@diagnostics.post("/policy/check", operation_id="checkRules", responses=problems(400, 401, 403, 415, 429))
async def check_rules(body: RulesRequest, caller: Caller, parts: Parts) -> RulesChecked:
    """Check rules without activating them. People also get warnings about reviewers and registered tools.

    A check that takes too long is stopped.
    """
    known = await find_known(parts) if caller.owner is None else Known(now_ms=now_ms())
    report = await parts.desk.evaluations.check_rules(body.text, body.file, known, lists=body.lists, caller=caller.name)
    return RulesChecked(
        ok=not report.faults,
        rules=report.rules,
        version=report.version,
        faults=list(report.faults),
        warnings=list(report.warnings),
    )


metrics = APIRouter(route_class=OpenRoute, include_in_schema=False)


@metrics.get("/metrics")
async def read_metrics(request: Request) -> Response:
    """Return the metrics of this process and of the store to the holder of the token."""
    expected = request.app.state.process.settings.metrics_token
    if expected is None:
        raise NotFound(f"The metrics are closed. Set {variable_of('metrics_token')} to open them.")
    sent, token = bearer_token(request) or "", expected.get_secret_value()
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise NotAuthenticated(f"Send the token of {variable_of('metrics_token')} as 'Authorization: Bearer …'.")
    readings: Readings = request.app.state.readings
    text, media_type = await render_metrics(readings, request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": media_type})


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
            workers=await asyncio.to_thread(count_workers, wiring.settings.store_url, wiring.tenant),
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
    return encode(MetricsPage(reading, readings.are_rules_held())), media_type


class MetricsPage(Collector):
    """The metrics of the process, and those of the store if it was read."""

    def __init__(self, reading: Reading | None, rules_held: bool) -> None:
        self._reading, self._rules_held = reading, rules_held

    def collect(self) -> Iterator[Metric]:
        yield from PROCESS.collect()
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
    bounds = [f"{bound / 1000:g}" for bound in BOUNDS_MS]
    buckets = [*zip(bounds, map(float, reading.starts.within), strict=True), ("+Inf", float(reading.starts.total))]
    yield HistogramMetricFamily(
        "sayso_start_delay_seconds",
        "Time of runs on the ready list, until a worker took them.",
        buckets=buckets,
        sum_value=reading.starts.sum_ms / 1000,
    )
    yield _by(
        "sayso_open_items", "Open items and active runs, as limits count them.", "age", reading.open_by_age.items()
    )
    if reading.in_doubt is not None:
        yield _gauge("sayso_in_doubt_items", "Open items about a call that may have run.", reading.in_doubt)
    yield _gauge("sayso_overdue_suspensions", "Suspensions whose due time has passed.", overdue.total)
    yield _gauge(
        "sayso_overdue_oldest_seconds", "How long the first is due; over 5 s no clock runs.", overdue.since_ms / 1000
    )
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
    family = GaugeMetricFamily(
        "sayso_cards", "Deliveries, of the 500 suspensions due first.", labels=("channel", "state")
    )
    for channel, counts in reading.cards.items():
        states: Mapping[str, int] = {"queued": counts.queued, "failed": counts.failed}
        for state, count in states.items():
            family.add_metric([channel, state], count)
    return family
