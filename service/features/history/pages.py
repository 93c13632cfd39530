"""The page of decided items, latest first, with filters and exports."""

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from sayso.core.text.language import _
from service.core.store.suspensions.reading import UnreadableRecord
from service.edge.web.content.cards import Row
from service.edge.web.pages import show
from service.edge.web.runs import find_place
from service.edge.web.sessions import RecordedRoute, SignedIn, wiring_of
from service.features.history.searching import (
    MOST_SEARCHED,
    STATES,
    Filter,
    Form,
    Found,
    Wanted,
    export_matches,
    find_again,
    list_deciders,
    search,
)

PAGE = 25

router = APIRouter(route_class=RecordedRoute)


@dataclass
class _Page:
    """The rows of a page, its damaged records, and the position at which the search stopped, unless at the end."""

    rows: list[Row] = field(default_factory=list)
    damaged: list[UnreadableRecord] = field(default_factory=list)
    following: int | None = None


@router.get("/history")
async def decided(
    request: Request,
    visitor: SignedIn,
    wanted: Wanted,
    after: Annotated[str, Query(max_length=100)] = "",
    kept: Annotated[str, Query(max_length=60 * PAGE)] = "",
    searched: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Response:
    """Show decided items, or lead to the run or suspension whose id was searched."""
    if place := await find_place(request, wanted.q):
        return RedirectResponse(place, 303)
    runs = wiring_of(request).runs
    skip = await runs.count_decided_to(after)
    page = await _read_page(request, wanted, skip, kept.split(",")[:PAGE] if kept else [])
    searched += (page.following or skip) - skip
    last = (await runs.decided(page.following - 1, 1))[:1] if page.following is not None else []
    ids = dict.fromkeys(row.href.split("/")[2] for row in page.rows)
    further = [urlencode({"after": cursor, "kept": ",".join(ids), "searched": searched}) for cursor in last]
    return await show(
        request,
        visitor,
        "pages/history.html",
        title=_("History"),
        rows=page.rows,
        deciders={row.href: list_deciders(row.item) for row in page.rows},
        damaged=page.damaged,
        wanted=wanted,
        search=wanted.q,
        states=STATES,
        after=after,
        following=last if len(page.rows) >= PAGE else [],
        further=further if len(page.rows) < PAGE else [],
        searched=searched,
    )


@router.get("/history/export")
async def export(request: Request, visitor: SignedIn, wanted: Wanted, format: Form = "csv") -> StreamingResponse:
    """Send the decided items that match, as a file."""
    return export_matches(wiring_of(request), wanted, format)


async def _read_page(request: Request, wanted: Filter, skip: int, kept: list[str]) -> _Page:
    """Return a page of rows, those in `kept` first; all items of its last suspension are on it."""
    wiring, page, position = wiring_of(request), _Page(), skip
    if kept:
        page.rows += [match.row for match in await find_again(wiring, wanted, kept) if match.row is not None]
    async with aclosing(search(wiring, wanted, skip, MOST_SEARCHED)) as matches:
        async for match in matches:
            if not isinstance(match, Found):
                page.following = match
                return page
            if len(page.rows) >= PAGE and match.position > position:
                page.following = position
                return page
            position = match.position
            page.damaged += [match.damaged] if match.damaged is not None else []
            is_new = match.record is None or match.record.id not in kept
            page.rows += [match.row] if match.row is not None and is_new else []
    return page
