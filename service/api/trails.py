"""Read what happened to a run: page by page, or live as it happens."""

import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field

from sayso.errors import NotAuthenticated, Unavailable
from service.api.dependencies import Caller, Limit, Parts, RunId
from service.api.problems import InvalidHeader
from service.api.routes import SignedInRoute, identify
from service.api.runs import find_run
from service.api.views import EventView
from service.api.waits import LOOK_AGAIN_S
from service.openapi import READS, problems
from service.store.runs import Run
from service.store.watch import HEARD_WITHIN_S, wait_woken

router = APIRouter(prefix="/runs", tags=["runs"], route_class=SignedInRoute)

_PAGE = 200
_SEQ = re.compile(r"[0-9]{1,9}")


class TrailPage(BaseModel):
    """A run's events, in order."""

    events: list[EventView]
    next_after: int = Field(description="`after` of the next page: the last sequence number so far.")


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
    if last_seq and not await parts.runs.trail(caller.tenant, run.id, after=last_seq - 1, limit=1):
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
    if caller.owner is not None or not await parts.retention.keeps_trail(caller.tenant, run_id):
        await find_run(parts, caller, run_id)
    entries = await parts.runs.trail(caller.tenant, run_id, after=after, limit=limit)
    return TrailPage(
        events=[EventView.of(entry) for entry in entries], next_after=entries[-1].seq if entries else after
    )


@router.get(
    "/{run_id}/events/stream",
    operation_id="streamEvents",
    response_class=EventSourceResponse,
    responses=problems(400, 401, 404),
)
async def stream_events(
    request: Request, run: FoundRun, caller: Caller, parts: Parts, last_seq: Annotated[int, Depends(last_seq_of)]
) -> AsyncIterator[ServerSentEvent]:
    """Stream a run's events as they happen, each with its sequence number as id; `end` comes when the run has ended."""
    with parts.watch.on(run.id) as moved:
        await wait_woken(moved, HEARD_WITHIN_S)
        while True:
            try:
                # A stream must not outlive its credential. The run is read before its events: what ended before they
                # were read has no more to come.
                await identify(request)
                status = (await parts.runs.read(caller.tenant, run.id)).status
                entries = await parts.runs.trail(caller.tenant, run.id, after=last_seq, limit=_PAGE)
            except (NotAuthenticated, Unavailable):
                return  # whoever follows asks again, and is told then what is the matter
            for entry in entries:
                last_seq = entry.seq
                yield ServerSentEvent(
                    raw_data=EventView.of(entry).model_dump_json(), event=entry.type, id=str(entry.seq)
                )
            if not entries and status.ended:
                yield ServerSentEvent(data={"status": status}, event="end")
                return
            if request.app.state.closing.is_set():
                return
            if not entries:
                await wait_woken(moved, LOOK_AGAIN_S)
