"""Server-sent events that make open pages refresh."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from math import inf
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from sayso.core.records.decisions import Actor
from sayso.core.records.freezes import Freeze
from sayso.errors import NotAuthenticated, NotFound, Unavailable
from service.core.operations.open_items import count_mine
from service.core.store.connection.watch import HEARD_WITHIN_S, Wakes, wait_woken
from service.core.store.suspensions.buckets import Buckets
from service.core.wiring import Wiring
from service.edge.web.additions import StreamPart, additions_of
from service.edge.web.sessions import SignedIn, Visitor, wiring_of

PING_S = 5.0  # pages take a stream without an event in 15 s for dead
MOST_RUNS = 32
CHECKED_MS = 5_000  # how long a stream relies on a check of its session; each read of rows checks it again
APART_S = 0.25  # minimum seconds between two events; faster changes are merged
router = APIRouter()


async def limit_streams(request: Request, visitor: SignedIn) -> AsyncIterator[None]:
    """Count the stream among the visitor's waiting requests until it ends."""
    with wiring_of(request).waiters.take(visitor.name):
        yield


@router.get("/live")
async def follow(
    request: Request,
    visitor: SignedIn,
    _limited: Annotated[None, Depends(limit_streams)],
    run: Annotated[tuple[str, ...], Query(max_length=MOST_RUNS)] = (),
    joined: bool = False,
    seen: Annotated[str, Query(max_length=40)] = "",
    run_seen: Annotated[str, Query(max_length=40)] = "",
) -> StreamingResponse:
    """Stream the changes that the open pages of a browser show.

    `inbox` has the number of items that the visitor can decide, and comes after any change. `rows` names the changed
    suspensions, each with "@" and its earliest deadline, ms, if it is pending; `all` comes where they are not known.
    `run` names each of the runs asked for that changed, and all of them after a change of freezes. `here` has the other
    people who have items open, as JSON. `ping` comes where nothing else does. A stream that has `joined` another one
    begins with the count alone, and one of a page that is current by its marks `seen` and `run_seen`, too. `seen` has
    the mark of the tenant and of each run, to which pages that join compare theirs.
    """
    wiring = wiring_of(request)
    runs: list[str] = []
    for run_id in dict.fromkeys(run):  # one that was deleted does not end the stream of the others
        try:
            await wiring.runs.read(run_id)
        except NotFound:
            if len(run) == 1:
                raise
        else:
            runs.append(run_id)
    parts = [row.stream(wiring, visitor.name) for row in additions_of(request) if row.stream is not None]
    closing: asyncio.Event = getattr(request.app.state, "closing", None) or asyncio.Event()
    return StreamingResponse(
        _stream(wiring, visitor, runs, closing, _Seen(joined, seen, run_seen), parts),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


class _Seen(NamedTuple):
    """What the pages of a stream have seen: all that the joined stream sent, or all until their marks."""

    joined: bool
    tenant: str
    run: str


async def _stream(
    wiring: Wiring, visitor: Visitor, runs: list[str], closing: asyncio.Event, seen: _Seen, parts: list[StreamPart]
) -> AsyncIterator[str]:
    watch, bell = wiring.watch, asyncio.Event()
    with ExitStack() as topics:
        changed = topics.enter_context(watch.on(visitor.tenant, bell))
        of_runs = {run: topics.enter_context(watch.on(run, bell)) for run in runs}
        moved = [topics.enter_context(watch.on(part.topic, bell)) for part in parts]
        yield "retry: 2000\n\n"
        await wait_woken(changed, HEARD_WITHIN_S)
        for topic in (changed, *of_runs.values(), *moved):
            topic.set()  # covers changes between the page and this stream
        for topic_name in (visitor.tenant, *runs):
            await watch.mark(topic_name)
        changes = _Changes(wiring, visitor.tenant, of_runs, seen)
        woken = True
        try:
            while not closing.is_set():
                principal = await wiring.credentials.identify(visitor.token, in_use=False, within_ms=CHECKED_MS)
                written: list[str] = []
                if changed.is_set() or any(topic.is_set() for topic in of_runs.values()):
                    written += await changes.write(changed, principal.reviewer("web"))
                for part, topic in zip(parts, moved, strict=True):
                    if topic.is_set() or not part.left_s:
                        topic.clear()
                        if (data := await part.read_change()) is not None:
                            written.append(f"event: {part.event}\ndata: {data}\n\n")
                if not (written or woken):
                    written.append("event: ping\ndata:\n\n")
                if written:
                    yield "".join(written)
                await asyncio.sleep(APART_S)
                if not closing.is_set():  # closing wakes all topics
                    woken = await wait_woken(bell, min((PING_S, *(part.left_s for part in parts))))
        except (NotAuthenticated, Unavailable):
            return  # the browser reconnects after two seconds and gets the error then


class _Changes:
    def __init__(self, wiring: Wiring, tenant: str, runs: dict[str, Wakes], seen: _Seen) -> None:
        self._wiring, self._tenant, self._runs, self._seen = wiring, tenant, runs, seen
        self._begun = False
        self._frozen: list[Freeze] = []

    async def write(self, changed: Wakes, reviewer: Actor) -> list[str]:
        wiring, of_inbox = self._wiring, changed.is_set()
        runs = [run for run, topic in self._runs.items() if topic.is_set()]
        names = changed.take()
        for topic in self._runs.values():
            topic.clear()
        marks = " ".join(self._find_marks())
        events = [f"event: seen\ndata: {marks}\n\n"]
        events.append(f"event: inbox\ndata: {await count_mine(wiring, reviewer, changed.woken_ms or inf)}\n\n")
        before = self._frozen
        if self._runs:
            self._frozen = await wiring.freezes.in_force(fresh=True)
        if not self._begun and self._is_current(marks):
            self._begun = True
            return events
        self._begun = True
        if of_inbox and names is None:
            events.append("event: all\ndata:\n\n")
        elif of_inbox:
            deadlines = await wiring.part(Buckets).find_deadlines(frozenset(names or ()))
            rows = " ".join(f"{name}@{at_ms or ''}" for name, at_ms in deadlines.items())
            events.append(f"event: rows\ndata: {rows}\n\n")
        events += [f"event: run\ndata: {run}\n\n" for run in (self._runs if self._frozen != before else runs)]
        return events

    def _find_marks(self) -> list[str]:
        """Return the mark of the tenant, then each run with its mark."""
        watch = self._wiring.watch
        return [watch.find_mark(self._tenant), *(f"{run}={watch.find_mark(run)}" for run in self._runs)]

    def _is_current(self, marks: str) -> bool:
        """Return whether the pages hold all changes until now."""
        seen = self._seen
        own = " ".join((seen.tenant, *(f"{run}={seen.run}" for run in self._runs)))
        return seen.joined or (bool(seen.tenant) and (bool(seen.run) or not self._runs) and own == marks)
