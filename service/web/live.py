"""Server-sent events that make open pages refresh."""

import asyncio
from collections.abc import AsyncIterator
from math import inf
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse

from sayso.errors import NotAuthenticated, Unavailable
from sayso.records.freezes import Freeze
from service.store.connection.watch import HEARD_WITHIN_S, wait_woken
from service.web.discussions.presence import Others
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.web.waiting.counting import count_mine
from service.wiring import Wiring

PING_S = 15.0
CHECKED_MS = 5_000  # how long a stream relies on a check of its session; each read of rows checks it again
APART_S = 0.25  # minimum seconds between two events; faster changes are merged
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

    `inbox` has the number of items that the visitor can decide, and comes after any change. `rows` names the changed
    suspensions, each with "@" and its earliest deadline, ms, if it is pending; `all` comes where they are not known.
    With `run`, `run` comes after a change of that run or a freeze instead. `here` has the other people who have items
    open, as JSON.
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
    watch, others, bell = wiring.watch, Others(wiring.presence, visitor.name), asyncio.Event()
    with (
        watch.on(visitor.tenant, bell) as changed,
        watch.on(run or visitor.tenant, bell) as run_changed,
        watch.on(wiring.presence.topic, bell) as moved,
    ):
        yield "retry: 2000\n\n"
        await wait_woken(changed, HEARD_WITHIN_S)
        changed.set()  # covers changes between the page and this stream
        run_changed.set()
        moved.set()
        frozen: list[Freeze] = []
        woken = True
        try:
            while not closing.is_set():
                principal = await wiring.credentials.identify(visitor.token, in_use=False, within_ms=CHECKED_MS)
                written = [] if woken else [": ping\n\n"]
                if changed.is_set() or run_changed.is_set():
                    of_run, of_inbox = run_changed.is_set(), changed.is_set()
                    names = changed.take()
                    run_changed.clear()
                    mine = await count_mine(wiring, principal.reviewer("web"), changed.woken_ms or inf)
                    written.append(f"event: inbox\ndata: {mine}\n\n")
                    if run is None and of_inbox:
                        written.append("event: all\ndata:\n\n" if names is None else await _write_rows(wiring, names))
                    if run is not None:
                        before, frozen = frozen, await wiring.freezes.in_force(fresh=True)
                        if of_run or frozen != before:
                            written.append("event: run\ndata: changed\n\n")
                if moved.is_set() or not others.left_s:
                    moved.clear()
                    if (people := await others.read_change()) is not None:
                        written.append(f"event: here\ndata: {people}\n\n")
                if written:
                    yield "".join(written)
                await asyncio.sleep(APART_S)
                if not closing.is_set():  # closing wakes all topics
                    woken = await wait_woken(bell, min(PING_S, others.left_s))
        except (NotAuthenticated, Unavailable):
            return  # the browser reconnects after two seconds and gets the error then


async def _write_rows(wiring: Wiring, names: set[str]) -> str:
    deadlines = await wiring.buckets.find_deadlines(frozenset(names))
    rows = " ".join(f"{name}@{at_ms or ''}" for name, at_ms in deadlines.items())
    return f"event: rows\ndata: {rows}\n\n"
