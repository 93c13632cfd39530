"""Read what happened to a run: page by page, or live as it happens."""

import json
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel, Field

from sayso.errors import InvalidHeader, NotAuthenticated, Unavailable, Unreadable
from service.api.routing.dependencies import Caller, Limit, Parts, RunId
from service.api.routing.routes import SignedInRoute, identify
from service.api.routing.waits import LOOK_AGAIN_S
from service.api.runs import find_run
from service.api.views.base import View
from service.api.views.runs import EventView
from service.auth.credentials import Principal
from service.http.openapi import READS, Responses, problems
from service.store.connection.watch import HEARD_WITHIN_S, wait_woken
from service.store.runs.runs import Run
from service.wiring import Wiring

router = APIRouter(prefix="/runs", tags=["runs"], route_class=SignedInRoute)

_PAGE = 200
_SEQ = re.compile(r"[0-9]{1,9}")


class EventStream(StreamingResponse):
    """Server-sent events. FastAPI's own streams log a traceback when a reader hangs up while an event is being sent."""

    media_type = "text/event-stream"


_STREAM: Responses = {
    200: {
        "description": "Server-sent events, each as in `listEvents`; `end` comes last.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "description": "One server-sent event of the stream.",
                    "properties": {
                        "id": {"type": "string", "description": "The event's sequence number; none with `end`."},
                        "event": {"type": "string", "description": "The event's type, or `end`."},
                        "data": {"type": "string", "contentMediaType": "application/json"},
                    },
                    "required": ["data"],
                },
                "example": {"id": "1", "event": "run_started", "data": '{"seq": 1, "type": "run_started"}'},
            }
        },
    }
}
"""OpenAPI 3.1 has no schema for streams; by convention it describes each event. 3.2 brings `itemSchema`."""


class HeadView(View):
    """The last event of a trail."""

    seq: int
    hash: str


class TrailPage(BaseModel):
    """A run's events, in order."""

    events: list[EventView]
    next_after: int = Field(description="`after` of the next page: the last sequence number so far.")
    head: HeadView | None = Field(
        description="Where the run's record says that the trail ended before these events were read; null where the "
        "record cannot be read."
    )
    fault: str | None = Field(description="What is wrong with the trail as a whole: it was cut, added to or altered.")


async def run_of(run_id: RunId, caller: Caller, parts: Parts) -> Run:
    """Return the run in the path, if this caller may see it."""
    return await find_run(parts, caller, run_id)


FoundRun = Annotated[Run, Depends(run_of)]


async def last_seq_of(
    request: Request,
    run: FoundRun,
    caller: Caller,
    parts: Parts,
    _last: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            description="The last sequence number that was received; the stream goes on behind it.",
            json_schema_extra={"pattern": "^[0-9]{1,9}$", "examples": ["12"]},
        ),
    ] = None,
) -> int:
    """Return the sequence number to go on behind; raises `InvalidHeader`, also for one that no event has yet."""
    said = request.headers.getlist("last-event-id") or ["0"]
    if len(said) > 1 or not _SEQ.fullmatch(said[0]):
        raise InvalidHeader("The header Last-Event-ID is a sequence number such as 12; leave it out to begin at first.")
    last_seq = int(said[0])
    if last_seq and not await parts.runs.trail(run.id, after=last_seq - 1, limit=1):
        raise InvalidHeader(
            f"The run has no event {last_seq} yet; send the number of the last event that came, or leave "
            "Last-Event-ID out to begin at first."
        )
    return last_seq


@router.get("/{run_id}/events", operation_id="listEvents", responses=READS)
async def list_events(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    after: Annotated[int, Query(ge=0, le=10**9, description="Only events numbered higher than this.")] = 0,
    limit: Limit = 100,
) -> TrailPage:
    """Return a run's events: numbered from 1 without gaps, each chained to the one before by its hash.

    People read them even after the run itself was deleted for its age.
    """
    if caller.owner is not None or not await parts.retention.keeps_trail(run_id):
        await _find_readable(parts, caller, run_id)
    end = await parts.trails.find_end(run_id)
    entries = await parts.runs.trail(run_id, after=after, limit=limit)
    return TrailPage(
        events=[EventView.of(entry) for entry in entries],
        next_after=after + len(entries),
        head=HeadView.model_validate(end.head) if end.head is not None else None,
        fault=end.fault or None,
    )


async def place_of(caller: Caller, parts: Parts) -> AsyncIterator[None]:
    """Hold a place among the caller's waiters until the stream has ended."""
    with parts.waiters.take(caller.name):
        yield


async def _find_readable(parts: Wiring, caller: Principal, run_id: str) -> None:
    """Raise `NotFound` unless the caller may read the run's trail; people do, though its record cannot be read."""
    try:
        await find_run(parts, caller, run_id)
    except Unreadable:
        if caller.owner is not None:
            raise


@router.get(
    "/{run_id}/events/stream",
    operation_id="streamEvents",
    response_class=EventStream,
    responses=_STREAM | problems(400, 401, 404, 409, 429),
)
async def stream_events(
    request: Request,
    run: FoundRun,
    caller: Caller,
    parts: Parts,
    last_seq: Annotated[int, Depends(last_seq_of)],
    _place: Annotated[None, Depends(place_of)],
) -> EventStream:
    """Stream a run's events as they happen, each with its sequence number as id; `end` comes when the run has ended."""
    stream = _stream(request, run.id, parts, last_seq)
    return EventStream(stream, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})


async def _stream(request: Request, run_id: str, parts: Wiring, last_seq: int) -> AsyncIterator[bytes]:
    with parts.watch.on(run_id) as moved:
        await wait_woken(moved, HEARD_WITHIN_S)
        while True:
            try:
                # A stream must not outlive its credential. The run is read before its events: what ended before they
                # were read has no more to come.
                await identify(request)
                status = (await parts.runs.read(run_id)).status
                entries = await parts.runs.trail(run_id, after=last_seq, limit=_PAGE)
            except (NotAuthenticated, Unreadable, Unavailable):
                return  # whoever follows asks again, and is told then what is the matter
            for entry in entries:
                last_seq = entry.seq
                data = EventView.of(entry).model_dump_json()
                yield format_sse_event(data_str=data, event=entry.type, id=str(entry.seq))
            if not entries and status.ended:
                fault = (await parts.trails.find_end(run_id)).fault
                ended = {"status": status} | ({"fault": fault} if fault else {})
                yield format_sse_event(data_str=json.dumps(ended), event="end")
                return
            if request.app.state.closing.is_set():
                return
            if not entries and not await wait_woken(moved, LOOK_AGAIN_S):
                yield KEEPALIVE_COMMENT
