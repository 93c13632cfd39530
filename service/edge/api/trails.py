"""Routes of trail events: in pages and as a stream."""

import json
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from sayso.core.records.events import EventType, TrailEntry
from sayso.errors import InvalidHeader, NotAuthenticated, Unavailable, Unreadable
from sayso.wire.suspensions import EventView, HeadView, TrailPage
from service.core.auth.credentials import Principal
from service.core.store.connection.watch import HEARD_WITHIN_S, wait_woken
from service.core.store.runs.runs import Run
from service.core.wiring import Wiring
from service.edge.api.dependencies import Caller, Limit, Parts, RunId, find_run
from service.edge.api.routes import REVALIDATE_S, SignedInRoute, identify
from service.edge.http.openapi import READS, Responses, problems

router = APIRouter(prefix="/runs", tags=["runs"], route_class=SignedInRoute)

_OF_REVIEWERS = (
    EventType.SECOND_LOOK_TAKEN,
    EventType.REVIEWER_REMINDED,
    EventType.ITEM_FORWARDED,
    EventType.DECISION_VOIDED,
    EventType.DECISION_DEFERRED,
    EventType.DECISION_RETRACTED,
    EventType.STAGE_STARTED,
)
_SEQ = re.compile(r"[0-9]{1,9}")


class EventStream(StreamingResponse):
    """Server-sent events. FastAPI's own streams log a traceback when a reader hangs up during an event."""

    media_type = "text/event-stream"


_STREAM: Responses = {
    200: {
        "description": "Server-sent events with the data of `listEvents`; `end` is the last one.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "description": "One server-sent event of the stream.",
                    "properties": {
                        "id": {"type": "string", "description": "The event's sequence number; missing for `end`."},
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
"""OpenAPI 3.1 has no schema for streams; by convention the schema describes one event. 3.2 has `itemSchema`."""


async def run_of(run_id: RunId, caller: Caller, parts: Parts) -> Run:
    """Return the run in the path. Raises `NotFound` if the caller may not see it."""
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
            description="The last received sequence number; the stream continues after it.",
            json_schema_extra={"pattern": "^[0-9]{1,9}$", "examples": ["12"]},
        ),
    ] = None,
) -> int:
    """Return the last received sequence number. Raises `InvalidHeader`, also for a number that no event has."""
    sent = request.headers.getlist("last-event-id") or ["0"]
    if len(sent) > 1 or not _SEQ.fullmatch(sent[0]):
        raise InvalidHeader(
            "Last-Event-ID must be a sequence number such as 12. Remove it to start with the first event."
        )
    last_seq = int(sent[0])
    if last_seq and not await parts.runs.trail(run.id, after=last_seq - 1, limit=1):
        raise InvalidHeader(
            f"The run has no event {last_seq}. Send the number of the last received event, or remove Last-Event-ID "
            "to start with the first event."
        )
    return last_seq


@router.get("/{run_id}/events", operation_id="listEvents", responses=READS)
async def list_events(
    run_id: RunId,
    caller: Caller,
    parts: Parts,
    after: Annotated[int, Query(ge=0, le=10**9, description="Only events with a higher number.")] = 0,
    limit: Limit = 100,
) -> TrailPage:
    """Return events of a run. They are numbered from 1 without gaps, and each hash includes the previous one.

    People can read them even after the run was deleted because of its age.
    """
    if caller.owner is not None or not await parts.retention.keeps_trail(run_id):
        await _find_readable(parts, caller, run_id)
    end = await parts.trails.find_end(run_id)
    entries = await parts.runs.trail(run_id, after=after, limit=limit)
    fault = end.fault or await (
        parts.trails.find_slice_fault(run_id, entries) if after else parts.trails.find_fault(run_id)
    )
    is_agent = caller.owner is not None
    return TrailPage(
        events=[EventView.model_validate(entry) for entry in entries if not (is_agent and _shows_draw(entry))],
        next_after=after + len(entries),
        head=HeadView.model_validate(end.head) if end.head is not None else None,
        partial=is_agent,
        fault=fault or None,
    )


async def slot_of(caller: Caller, parts: Parts) -> AsyncIterator[None]:
    """Count the stream among the caller's waiting requests until it ends."""
    with parts.waiters.take(caller.name):
        yield


def _shows_draw(entry: TrailEntry) -> bool:
    """Return whether an event may show that a call was drawn: a decision that decides nothing yet, or a second look."""
    if entry.type in _OF_REVIEWERS:
        return True
    return entry.type == EventType.DECISION_RECORDED and entry.data.get("verdict") is None


async def _find_readable(parts: Wiring, caller: Principal, run_id: str) -> None:
    """Raise `NotFound` unless the caller may read the trail. People may even if the run's record is unreadable."""
    try:
        await find_run(parts, caller, run_id)
    except Unreadable:
        if caller.owner is not None:
            raise


@router.get(
    "/{run_id}/events/stream",
    operation_id="streamEvents",
    response_class=EventStream,
    responses=_STREAM | problems(400, 401, 403, 404, 409, 429),
)
async def stream_events(
    request: Request,
    run: FoundRun,
    caller: Caller,
    parts: Parts,
    last_seq: Annotated[int, Depends(last_seq_of)],
    _slot: Annotated[None, Depends(slot_of)],
) -> EventStream:
    """Stream the events of a run with their sequence numbers as ids. `end` follows the last event."""
    stream = _stream(request, run.id, parts, last_seq, is_agent=caller.owner is not None)
    return EventStream(stream, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})


async def _stream(
    request: Request, run_id: str, parts: Wiring, last_seq: int, *, is_agent: bool
) -> AsyncIterator[bytes]:
    with parts.watch.on(run_id) as moved:
        await wait_woken(moved, HEARD_WITHIN_S)
        while True:
            try:
                # A stream must not outlive its credential. The run is read before its events: if it has ended, these
                # events are the last ones.
                await identify(request)
                status = (await parts.runs.read(run_id)).status
                entries = await parts.runs.trail(run_id, after=last_seq, limit=200)
            except (NotAuthenticated, Unreadable, Unavailable):
                return  # the client connects again and gets the error then
            for entry in entries:
                last_seq = entry.seq
                if is_agent and _shows_draw(entry):
                    continue
                data = EventView.model_validate(entry).model_dump_json()
                yield format_sse_event(data_str=data, event=entry.type, id=str(entry.seq))
            if not entries and status.ended:
                fault = (await parts.trails.find_end(run_id)).fault or await parts.trails.find_fault(run_id)
                end = {"status": status} | ({"fault": fault} if fault else {})
                yield format_sse_event(data_str=json.dumps(end), event="end")
                return
            if request.app.state.closing.is_set():
                return
            if not entries and not await wait_woken(moved, REVALIDATE_S):
                yield KEEPALIVE_COMMENT
