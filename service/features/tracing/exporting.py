"""Send spans to a collector (OTLP/HTTP) beside all other work: a bounded queue, short attempts, and no second one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from prometheus_client import Counter

from sayso.core.packages import VERSION
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import SaysoError
from service.core.logs import Trouble
from service.core.metrics import PROCESS
from service.core.outgoing.http import Posts
from service.core.settings import PORTS, Settings
from service.core.settings.receivers import InternalReceivers, read_receivers
from service.core.store.connection.commits import Observer, Update
from service.features.tracing.acts import Act, describe_delivery, list_acts

MOST_WAITING = 4_096
"""The spans that wait in one process; while they do, new ones are dropped."""

ATTEMPT_S = 2.0
_BATCH = 256
_EVERY_S = 0.5

_SPANS = Counter(
    "sayso_spans", "Spans that a collector accepted, and those that were dropped.", ("result",), registry=PROCESS
)
_EXPORTED, _DROPPED = _SPANS.labels("exported"), _SPANS.labels("dropped")


class SpanExporter:
    """The spans of one process that wait for the collector."""

    def __init__(self, endpoint: str, posts: Posts, environment: str = "") -> None:
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._headers = {"Content-Type": "application/x-protobuf"}
        self._posts, self._environment = posts, environment
        self._waiting: deque[Act] = deque()
        self._trouble = Trouble("spans_not_exported")

    def note_change(self, update: Update) -> None:
        """Queue the spans of a change; never raises."""
        try:
            for act in list_acts(update):
                self._put(act)
        except Exception as error:  # noqa: BLE001  telemetry never fails a change
            self._trouble.note(error)

    def note_delivery(self, record: SuspensionRecord, message_id: str, at_ms: int, took_ms: float) -> None:
        """Queue the span of an accepted message."""
        if (act := describe_delivery(record, message_id, at_ms, took_ms)) is not None:
            self._put(act)

    async def run(self) -> None:
        """Send what waits, again and again."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        """Send what waits now, batch by batch, until an attempt fails; a failed batch is dropped."""
        while batch := [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]:
            if not await self._send(batch):
                return

    async def _send(self, batch: list[Act]) -> bool:
        try:
            body = await asyncio.to_thread(encode_acts, batch, self._environment)
            answer = await self._posts.send(self._url, self._headers, body)
            reason = "" if answer.accepted else answer.error or f"status {answer.status}"
        except (SaysoError, OSError, ValueError) as error:
            reason = error.message if isinstance(error, SaysoError) else type(error).__name__
        except asyncio.CancelledError:
            _DROPPED.inc(len(batch))
            raise
        if reason:
            _DROPPED.inc(len(batch))
            self._trouble.note(SaysoError(reason))
            return False
        _EXPORTED.inc(len(batch))
        self._trouble.over()
        return True

    def _put(self, act: Act) -> None:
        if len(self._waiting) >= MOST_WAITING:
            _DROPPED.inc()
        else:
            self._waiting.append(act)


def encode_acts(acts: list[Act], environment: str = "") -> bytes:
    """Return the body of an OTLP request, in protobuf."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    named = {"deployment.environment.name": environment} if environment else {}
    resource = Resource({"service.name": "sayso", "service.version": VERSION, **named})
    scope, spans = InstrumentationScope("sayso", VERSION), []
    for act in acts:
        _, trace_id, parent_id, flags = act.traceparent.split("-")
        trace, sampled = int(trace_id, 16), TraceFlags(int(flags, 16))
        ended_ns = act.at_ms * 1_000_000
        spans.append(
            ReadableSpan(
                act.name,
                SpanContext(trace, act.span_id, is_remote=False, trace_flags=sampled),
                SpanContext(trace, int(parent_id, 16), is_remote=True, trace_flags=sampled),
                resource,
                act.facts,
                kind=SpanKind.INTERNAL,
                status=Status(StatusCode.ERROR if act.failed else StatusCode.UNSET),
                start_time=ended_ns - round(act.took_ms * 1_000_000),
                end_time=ended_ns,
                instrumentation_scope=scope,
            )
        )
    body: bytes = encode_spans(spans).SerializeToString()
    return body


def _find_receivers(settings: Settings) -> InternalReceivers:
    """Return the internal receivers, with a collector over plain http: it is one, since the operator names it."""
    parts = urlsplit(settings.otlp_endpoint or "")
    if parts.scheme == "https":
        return settings.receivers
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    named = read_receivers((f"{host}:{parts.port or PORTS['http']}",))
    known = settings.receivers
    return InternalReceivers((*known.hosts, *named.hosts), (*known.networks, *named.networks))


@asynccontextmanager
async def observe_spans(settings: Settings) -> AsyncIterator[tuple[Observer, ...]]:
    """Yield the exporter of this process, if a collector is set; what waits at the end gets a last attempt."""
    if settings.otlp_endpoint is None:
        yield ()
        return
    posts = Posts(
        loopback=True,  # the collector is often a neighbour on this very machine
        attempt_s=ATTEMPT_S,
        internal=_find_receivers(settings),
        proxy=settings.egress_proxy,
    )
    exporter = SpanExporter(settings.otlp_endpoint, posts, settings.environment)
    sending = asyncio.create_task(exporter.run())
    try:
        yield (exporter,)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(exporter.flush(), ATTEMPT_S)
        await posts.aclose()
