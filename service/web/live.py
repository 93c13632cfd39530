"""Tell open pages that something moved, as it happens; they fetch again what they show."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse

from sayso.errors import NotAuthenticated, Unavailable
from sayso.records.freezes import Freeze
from service.store.connection.watch import HEARD_WITHIN_S
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.wiring import Wiring

PING_S = 15.0
APART_S = 0.2
"""What moves faster than this is told in one go."""

router = APIRouter()


async def place_of(request: Request, visitor: SignedIn) -> AsyncIterator[None]:
    """Hold a place among the visitor's waiters until the stream has ended."""
    with wiring_of(request).waiters.take(visitor.name):
        yield


@router.get("/live")
async def follow(
    request: Request, visitor: SignedIn, _place: Annotated[None, Depends(place_of)], run: str | None = None
) -> StreamingResponse:
    """Stream `inbox` with the number of runs that wait whenever anything moves, and `run` when the run named does.

    A freeze moves every run: its page says what is frozen.
    """
    wiring = wiring_of(request)
    if run is not None:
        await wiring.runs.read(run)
    closing: asyncio.Event = getattr(request.app.state, "closing", None) or asyncio.Event()
    return StreamingResponse(
        _tell(wiring, visitor, run, closing),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _tell(wiring: Wiring, visitor: Visitor, run: str | None, closing: asyncio.Event) -> AsyncIterator[str]:
    with wiring.watch.on(visitor.tenant) as moved, wiring.watch.on(run or visitor.tenant) as run_moved:
        yield "retry: 2000\n\n"
        await _wait(HEARD_WITHIN_S, moved)
        moved.set()  # whatever moved between the page and this stream is told at once
        run_moved.set()
        frozen: list[Freeze] = []
        try:
            while not closing.is_set():
                await wiring.credentials.identify(visitor.token, in_use=False)
                if not (moved.is_set() or run_moved.is_set()):
                    yield ": still here\n\n"
                else:
                    of_run = run_moved.is_set()
                    moved.clear()
                    run_moved.clear()
                    yield f"event: inbox\ndata: {await wiring.runs.count_pending()}\n\n"
                    if run is not None:
                        before, frozen = frozen, await wiring.freezes.in_force(fresh=True)
                        if of_run or frozen != before:
                            yield "event: run\ndata: moved\n\n"
                    await _wait(APART_S, closing)
                await _wait(PING_S, closing, moved, run_moved)
        except (NotAuthenticated, Unavailable):
            return  # the browser asks again in two seconds, and is told then what is the matter


async def _wait(timeout_s: float, *events: asyncio.Event) -> None:
    """Wait until one of the events is set or the time is over."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
