"""Server-sent events that make open pages refresh."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse

from sayso.errors import NotAuthenticated, Unavailable
from sayso.records.freezes import Freeze
from service.store.connection.watch import HEARD_WITHIN_S
from service.web.discussions.presence import Others
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.wiring import Wiring

PING_S = 15.0
APART_S = 0.2  # minimum seconds between two events; faster changes are merged
router = APIRouter()


async def limit_streams(request: Request, visitor: SignedIn) -> AsyncIterator[None]:
    """Count the stream among the visitor's waiting requests until it ends."""
    with wiring_of(request).waiters.take(visitor.name):
        yield


@router.get("/live")
async def follow(
    request: Request, visitor: SignedIn, _limited: Annotated[None, Depends(limit_streams)], run: str | None = None
) -> StreamingResponse:
    """Stream the changes that an open page shows.

    `inbox` has the number of waiting runs and comes after any change. `rows` names the changed suspensions; `all`
    comes where they are not known. With `run`, `run` comes after a change of that run or a freeze instead. `here` has
    the other people who have items open, as JSON.
    """
    wiring = wiring_of(request)
    if run is not None:
        await wiring.runs.read(run)
    closing: asyncio.Event = getattr(request.app.state, "closing", None) or asyncio.Event()
    return StreamingResponse(
        _stream(wiring, visitor, run, closing),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(wiring: Wiring, visitor: Visitor, run: str | None, closing: asyncio.Event) -> AsyncIterator[str]:
    watch, others = wiring.watch, Others(wiring.presence, visitor.name)
    with (
        watch.on(visitor.tenant) as changed,
        watch.on(run or visitor.tenant) as run_changed,
        watch.on(wiring.presence.topic) as moved,
    ):
        yield "retry: 2000\n\n"
        await _wait(HEARD_WITHIN_S, changed)
        changed.set()  # covers changes between the page and this stream
        run_changed.set()
        moved.set()
        frozen: list[Freeze] = []
        try:
            while not closing.is_set():
                await wiring.credentials.identify(visitor.token, in_use=False)
                woken = moved.is_set() or not others.left_s
                if not (woken or changed.is_set() or run_changed.is_set()):
                    yield ": ping\n\n"
                if changed.is_set() or run_changed.is_set():
                    of_run, of_inbox = run_changed.is_set(), changed.is_set()
                    names = changed.take()
                    run_changed.clear()
                    yield f"event: inbox\ndata: {await wiring.runs.count_pending()}\n\n"
                    if run is None and of_inbox:
                        yield "event: all\ndata:\n\n" if names is None else f"event: rows\ndata: {' '.join(names)}\n\n"
                    if run is not None:
                        before, frozen = frozen, await wiring.freezes.in_force(fresh=True)
                        if of_run or frozen != before:
                            yield "event: run\ndata: changed\n\n"
                if woken:
                    moved.clear()
                    if (people := await others.read_change()) is not None:
                        yield f"event: here\ndata: {people}\n\n"
                await _wait(APART_S, closing)
                await _wait(min(PING_S, others.left_s), closing, changed, run_changed, moved)
        except (NotAuthenticated, Unavailable):
            return  # the browser reconnects after two seconds and gets the error then


async def _wait(timeout_s: float, *events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
