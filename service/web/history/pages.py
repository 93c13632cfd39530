"""The page of decided items, latest first, with filters and exports."""

from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from sayso.text.language import _
from service.store.directory.views import LONGEST_SEARCH
from service.store.suspensions.reading import UnreadableRecord
from service.web.content.cards import Row
from service.web.form_posts import RecordedRoute
from service.web.history.exports import write_csv, write_json
from service.web.history.searching import STATES, Filter, Found, list_deciders, search
from service.web.pages import show
from service.web.searches import find_place
from service.web.sessions import SignedIn, wiring_of

PAGE = 25
_MAX_SEARCHED = 1000

router = APIRouter(route_class=RecordedRoute)

Text = Annotated[str, Query(max_length=200)]


def read_filter(
    verdict: Text = "",
    by: Text = "",
    tool: Text = "",
    agent: Text = "",
    fallback: Text = "",
    edited: Text = "",
    q: Annotated[str, Query(max_length=LONGEST_SEARCH)] = "",
) -> Filter:
    """Return the filter of a request; an unknown verdict matches everything."""
    texts = (one.strip() for one in (by, tool, agent, fallback, edited, q))
    return Filter(verdict if verdict in STATES else "", *texts)


Wanted = Annotated[Filter, Depends(read_filter)]


@router.get("/history")
async def decided(
    request: Request, visitor: SignedIn, wanted: Wanted, after: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Show decided items, or lead to the run or suspension whose id was searched."""
    if place := await find_place(request, wanted.q):
        return RedirectResponse(place, 303)
    runs = wiring_of(request).runs
    rows, damaged, following = await _read_page(request, wanted, await runs.count_decided_to(after))
    return await show(
        request,
        visitor,
        "pages/history.html",
        title=_("History"),
        rows=rows,
        deciders={row.href: list_deciders(row.item) for row in rows},
        damaged=damaged,
        wanted=wanted,
        search=wanted.q,
        states=STATES,
        after=after,
        following=(await runs.decided(following - 1, 1))[:1] if following is not None else [],
        searched=_MAX_SEARCHED,
    )


@router.get("/history/export")
async def export(
    request: Request, visitor: SignedIn, wanted: Wanted, format: Literal["csv", "json"] = "csv"
) -> StreamingResponse:
    """Send the decided items that match, as a file."""
    write = write_csv if format == "csv" else write_json
    return StreamingResponse(
        write(wiring_of(request), wanted),
        media_type="text/csv; charset=utf-8" if format == "csv" else "application/json",
        headers={"Content-Disposition": f'attachment; filename="sayso-history.{format}"', "Cache-Control": "no-store"},
    )


async def _read_page(
    request: Request, wanted: Filter, skip: int
) -> tuple[list[Row], list[UnreadableRecord], int | None]:
    """Return a page of rows; all items of its last suspension are on it."""
    rows: list[Row] = []
    damaged: list[UnreadableRecord] = []
    position = skip
    async with aclosing(search(wiring_of(request), wanted, skip, _MAX_SEARCHED)) as found_ones:
        async for found in found_ones:
            if not isinstance(found, Found):
                return rows, damaged, found
            if len(rows) >= PAGE and found.position > position:
                return rows, damaged, position
            position = found.position
            damaged += [found.damaged] if found.damaged is not None else []
            rows += [found.row] if found.row is not None else []
    return rows, damaged, None
