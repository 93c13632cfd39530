"""Routes for events of other software, and the timeline that merges them with the trail."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field, JsonValue, model_validator

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.records.events import TrailEntry
from sayso.errors import NotAllowed
from sayso.timeline.external_events import Kind
from sayso.timeline.merging import Entry, SourceFormat, build_entries, merge
from sayso.wire.models import RequestBody, SentTimestamp, Timestamp, View, moment
from sayso.wire.suspensions import EventView, ExternalEventsResponse
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.store.runs.runs import Run
from service.edge.api.dependencies import Caller, Limit, Parts, RunId, find_run
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import READS, WRITES

router = APIRouter(prefix="/runs", tags=["runs"], route_class=SignedInRoute)

MAX_EVENTS_PER_REQUEST = 500
LONGEST_EVENT_BYTES = 64 * 1024

Source = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$", examples=["worker-1"])]


class ExternalEventBody(RequestBody):
    """One event in the format of its source."""

    seq: int = Field(strict=True, ge=1, le=10**9, description="The event's number within its source.")
    at: SentTimestamp | None = Field(default=None, description="When it happened, if the event itself does not say.")
    event: JsonObject = Field(min_length=1, description=f"At most {LONGEST_EVENT_BYTES} bytes of JSON.")

    @model_validator(mode="after")
    def _fits(self) -> "ExternalEventBody":
        if self.at is not None and self.at.year < 1971:
            raise ValueError("at is before 1971; send the time of the event")
        if len(canonical_json(self.event)) > LONGEST_EVENT_BYTES:
            raise ValueError(f"event is over {LONGEST_EVENT_BYTES} bytes; shorten its long values")
        return self

    @property
    def external_event(self) -> ExternalEvent:
        return ExternalEvent(self.seq, None if self.at is None else round(self.at.timestamp() * 1000), self.event)


class ExternalEventsRequest(RequestBody):
    """Events of one source in one format."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "source_format": "afk",
                    "source": "worker-1",
                    "events": [{"seq": 1, "event": {"type": "run_started", "data": {"agent_name": "support"}}}],
                }
            ]
        }
    )

    source_format: SourceFormat
    source: Source = Field(default="agent", description="The source; each source numbers its events from 1.")
    events: tuple[ExternalEventBody, ...] = Field(min_length=1, max_length=MAX_EVENTS_PER_REQUEST)


class ExternalEventView(View):
    """One event as it was received."""

    position: int
    source: str
    source_format: SourceFormat
    seq: int
    at: Timestamp = Field(validation_alias="at_ms", description="When it was received.")
    event: JsonObject


class ExternalEventPage(View):
    """Events of all sources in the order of receipt."""

    events: list[ExternalEventView]
    next_after: int = Field(description="`after` of the next page: the last position on this page.")


class ExternalEntryView(View):
    """Merged events of a source: a message with all its fragments, a call with its result, or another event."""

    source: str
    source_format: SourceFormat
    first_seq: int
    last_seq: int
    kind: Kind
    who: str
    text: str
    note: str
    name: str
    call_id: str
    ended: bool = Field(description="For a call: whether its result was reported.")
    ok: bool | None = Field(description="Whether it succeeded, if the source says so.")
    data: JsonValue
    output: JsonValue
    invocation: str
    parent: str
    depth: int = Field(description="The depth of its invocation below the first one.")


class TimelineEntry(View):
    """An entry of the timeline: a trail event, or an external one."""

    at: Timestamp
    event: EventView | None = None
    external: ExternalEntryView | None = None

    @classmethod
    def of(cls, entry: TrailEntry | Entry, run: Run) -> "TimelineEntry":
        """Return the entry; in an external one the secrets are masked that people typed."""
        if isinstance(entry, TrailEntry):
            return cls(at=moment(entry.at_ms), event=EventView.model_validate(entry))
        view = ExternalEntryView.model_validate(entry)
        said = run.mask({"text": view.text, "note": view.note, "data": view.data, "output": view.output})
        return cls(at=moment(entry.at_ms), external=view.model_copy(update=said))


class Timeline(View):
    """Trail events and external events of a run in the order of time."""

    entries: list[TimelineEntry]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")


@router.post("/{run_id}/events", operation_id="reportEvents", responses=WRITES)
async def report_events(
    run_id: RunId, body: ExternalEventsRequest, caller: Caller, parts: Parts
) -> ExternalEventsResponse:
    """Report events of a run, as its owner. Either all of them are stored, or none.

    A repeated event is stored once. A different event with a used number is refused.
    """
    run = await find_run(parts, caller, run_id)
    if run.owner != caller.name:
        raise NotAllowed(f"Only {run.owner}, who started this run, can report its events.")
    events = [event.external_event for event in body.events]
    result = await parts.part(ExternalEvents).add(run_id, body.source, body.source_format, events)
    return ExternalEventsResponse(added=result.added, repeated=len(events) - result.added, count=result.kept)


@router.get("/{run_id}/events/external", operation_id="listExternalEvents", responses=READS)
async def list_external_events(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    after: Annotated[int, Query(ge=0, le=10**6, description="Only events after this position.")] = 0,
    limit: Limit = 100,
) -> ExternalEventPage:
    """List the external events of a run as they were received, but for secrets that people typed.

    They are deleted with the run.
    """
    run = await find_run(parts, caller, run_id)
    page = await parts.part(ExternalEvents).read(run_id, after=after, limit=limit)
    received = (ExternalEventView.model_validate(event) for event in page.events)
    views = [view.model_copy(update={"event": run.mask(view.event)}) for view in received]
    return ExternalEventPage(events=views, next_after=page.position)


@router.get("/{run_id}/timeline", operation_id="getTimeline", responses=READS)
async def get_timeline(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    skip: Annotated[int, Query(ge=0, le=10_000, description="The number of entries to skip.")] = 0,
    limit: Limit = 100,
) -> Timeline:
    """Return trail events and external events as one timeline: fragments are folded, calls have their results."""
    run = await find_run(parts, caller, run_id)
    trail = await parts.runs.trail(run_id, limit=5_000)
    merged = merge(trail, build_entries(await parts.part(ExternalEvents).read_all(run_id)))
    page = [TimelineEntry.of(entry, run) for entry in merged[skip : skip + limit]]
    return Timeline(entries=page, next_skip=skip + limit if len(merged) > skip + limit else None)
