"""Take what other software tells of a run, in its own words, and show it with our own trail as one timeline."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from sayso.canonical_json import JsonObject, canonical_json
from sayso.errors import NotAllowed
from sayso.formats.external_events import Kind, StoredEvent
from sayso.records.events import TrailEntry
from sayso.timeline.merging import Entry, build_entries, merge
from sayso.timeline.sources import SourceFormat
from service.api.routing.dependencies import Caller, Limit, Parts, RunId
from service.api.routing.routes import SignedInRoute
from service.api.runs import find_run
from service.api.views.base import SentTimestamp, Timestamp, View
from service.api.views.runs import EventView
from service.http.openapi import READS, WRITES
from service.store.runs.external_events import ExternalEvent

router = APIRouter(prefix="/runs", tags=["runs"], route_class=SignedInRoute)

MOST_AT_ONCE = 500
LONGEST_EVENT_BYTES = 64 * 1024
_LONGEST_TRAIL = 5_000

Source = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$", examples=["worker-1"])]


class ExternalEventBody(BaseModel):
    """One event as its framework wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int = Field(strict=True, ge=1, le=10**9, description="Its number among those of its source.")
    at: SentTimestamp | None = Field(default=None, description="When it happened, where the event itself does not say.")
    event: JsonObject = Field(min_length=1, description=f"At most {LONGEST_EVENT_BYTES} bytes of JSON.")

    @model_validator(mode="after")
    def _fits(self) -> "ExternalEventBody":
        if self.at is not None and self.at.year < 1971:
            raise ValueError("at is before 1971; say when it happened")
        if len(canonical_json(self.event)) > LONGEST_EVENT_BYTES:
            raise ValueError(f"event is over {LONGEST_EVENT_BYTES} bytes; leave out or cut what is long in it")
        return self

    @property
    def external_event(self) -> ExternalEvent:
        """The same, for the store."""
        return ExternalEvent(self.seq, None if self.at is None else round(self.at.timestamp() * 1000), self.event)


class ExternalEventsRequest(BaseModel):
    """Events of one source, in one dialect."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "source_format": "afk",
                    "source": "worker-1",
                    "events": [{"seq": 1, "event": {"type": "run_started", "data": {"agent_name": "support"}}}],
                }
            ]
        },
    )

    source_format: SourceFormat
    source: Source = Field(default="agent", description="Who tells; each source counts its own events from 1.")
    events: tuple[ExternalEventBody, ...] = Field(min_length=1, max_length=MOST_AT_ONCE)


class ExternalEventsResponse(BaseModel):
    """What became of the events."""

    added: int = Field(description="How many were new.")
    repeated: int = Field(description="How many were there already, word for word.")
    count: int = Field(description="How many the run has now, of all sources.")


class KeptView(View):
    """One event as it came."""

    position: int
    source: str
    source_format: SourceFormat
    seq: int
    at: Timestamp = Field(validation_alias="at_ms", description="When it was received.")
    event: JsonObject


class KeptPage(BaseModel):
    """Events of all sources, in the order they came."""

    events: list[KeptView]
    next_after: int = Field(description="`after` of the next page: the last position so far.")


class EntryView(View):
    """What a source told, folded: a message with all its fragments, a call with its result, or anything else."""

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
    ended: bool = Field(description="Of a call: whether its result was told.")
    ok: bool | None = Field(description="Whether with success, where the source says so.")
    data: JsonValue
    output: JsonValue
    invocation: str
    parent: str
    depth: int = Field(description="How far its invocation is below the first one.")


class MomentView(BaseModel):
    """One moment of the timeline: an event of our trail, or what a source told."""

    at: Timestamp
    event: EventView | None = None
    told: EntryView | None = None

    @classmethod
    def of(cls, one: TrailEntry | Entry) -> "MomentView":
        """Return the view of either."""
        if isinstance(one, TrailEntry):
            return cls(at=one.at_ms, event=EventView.of(one))
        return cls(at=one.at_ms, told=EntryView.model_validate(one))


class Timeline(BaseModel):
    """Everything that is known of a run, in the order it happened."""

    moments: list[MomentView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")


@router.post("/{run_id}/events", operation_id="tellEvents", responses=WRITES)
async def report_events(
    run_id: RunId, body: ExternalEventsRequest, caller: Caller, parts: Parts
) -> ExternalEventsResponse:
    """Tell what happened to a run, as its own agent: all of these events are kept, or none.

    An event sent again under its number is kept once; under a number that is taken it is refused.
    """
    run = await find_run(parts, caller, run_id)
    if run.owner != caller.name:
        raise NotAllowed(f"Only {run.owner}, who asked for this run, tells what happened to it.")
    external_events = [one.external_event for one in body.events]
    told = await parts.external_events.add(run_id, body.source, body.source_format, external_events)
    return ExternalEventsResponse(added=told.added, repeated=len(external_events) - told.added, count=told.kept)


@router.get("/{run_id}/events/told", operation_id="listToldEvents", responses=READS)
async def list_external_events(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    after: Annotated[int, Query(ge=0, le=10**6, description="Only those that came behind this position.")] = 0,
    limit: Limit = 100,
) -> KeptPage:
    """Return what sources told of a run, as it came; it is deleted with the run."""
    await find_run(parts, caller, run_id)
    kept: list[StoredEvent] = await parts.external_events.read(run_id, after=after, limit=limit)
    views = [KeptView.model_validate(one) for one in kept]
    return KeptPage(events=views, next_after=kept[-1].position if kept else after)


@router.get("/{run_id}/timeline", operation_id="getTimeline", responses=READS)
async def get_timeline(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    skip: Annotated[int, Query(ge=0, le=10_000, description="How many to leave out from the front.")] = 0,
    limit: Limit = 100,
) -> Timeline:
    """Return our trail and what sources told as one timeline: fragments folded, calls with their results."""
    await find_run(parts, caller, run_id)
    trail = await parts.runs.trail(run_id, limit=_LONGEST_TRAIL)
    both = merge(trail, build_entries(await parts.external_events.read_all(run_id)))
    page = both[skip : skip + limit]
    more = len(both) > skip + limit
    return Timeline(moments=[MomentView.of(one) for one in page], next_skip=skip + limit if more else None)
