"""The page of decided items, latest first, with filters and exports."""

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from sayso.core.text.language import _
from service.core.store.suspensions.reading import UnreadableRecord
from service.edge.web.content.cards import Row
from service.edge.web.content.sorting import UNSORTED, Keys, Sorting, read_sorting
from service.edge.web.pages import show
from service.edge.web.runs import find_place
from service.edge.web.sessions import RecordedRoute, SignedIn, Visitor, wiring_of
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
MOST_SORTED = 300  # suspensions of which a sorted page shows the items: their rows are made for every page of it
_SORTED_BY: Keys[Row] = {
    "when": lambda row: row.at_ms,
    "item": lambda row: row.tool.casefold(),
    "verdict": lambda row: row.item.outcome.verdict if row.item.outcome is not None else None,
    "by": lambda row: ", ".join(list_deciders(row.item)).casefold() or None,
    "look": lambda row: row.look_ms,
    "result": lambda row: row.state,
}

router = APIRouter(route_class=RecordedRoute)


@dataclass
class _Page:
    """The rows of a page, its damaged records, and where the next page begins; `cut` if older items were not sorted."""

    rows: list[Row] = field(default_factory=list)
    damaged: list[UnreadableRecord] = field(default_factory=list)
    following: int | None = None
    cut: bool = False


@router.get("/history")
async def decided(
    request: Request,
    visitor: SignedIn,
    wanted: Wanted,
    after: Annotated[str, Query(max_length=100)] = "",
    kept: Annotated[str, Query(max_length=60 * PAGE)] = "",
    searched: Annotated[int, Query(ge=0, le=10**9)] = 0,
    sort: Annotated[str, Query(max_length=20)] = "",
    place: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> Response:
    """Show decided items, or lead to the run or suspension whose id was searched.

    With `sort`, show the latest ones sorted by that column, from the row `place` on.
    """
    if target := await find_place(request, wanted.q):
        return RedirectResponse(target, 303)
    if sorting := read_sorting(sort, _SORTED_BY):
        page = await _read_sorted(request, wanted, sorting, place)
        return await _show(request, visitor, wanted, page, sorting, place)
    runs = wiring_of(request).runs
    skip = await runs.count_decided_to(after)
    page = await _read_page(request, wanted, skip, kept.split(",")[:PAGE] if kept else [])
    searched += (page.following or skip) - skip
    last = (await runs.decided(page.following - 1, 1))[:1] if page.following is not None else []
    ids = dict.fromkeys(row.href.split("/")[2] for row in page.rows)
    further = [urlencode({"after": cursor, "kept": ",".join(ids), "searched": searched}) for cursor in last]
    return await _show(
        request,
        visitor,
        wanted,
        page,
        after=after,
        following=last if len(page.rows) >= PAGE else [],
        further=further if len(page.rows) < PAGE else [],
        searched=searched,
    )


async def _show(
    request: Request,
    visitor: Visitor,
    wanted: Filter,
    page: _Page,
    sorting: Sorting = UNSORTED,
    place: int = 0,
    **given: Any,
) -> Response:
    context: dict[str, Any] = {"after": "", "following": [], "further": [], "searched": 0, **given}
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
        sorting=sorting,
        place=place,
        onward=page.following if sorting else None,
        cut=MOST_SORTED if page.cut else 0,
        archived=await wiring_of(request).store.archive.find_last_day(),
        **context,
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


async def _read_sorted(request: Request, wanted: Filter, sorting: Sorting, place: int) -> _Page:
    """Return a page of the latest rows in this order."""
    page, rows = _Page(), list[Row]()
    async with aclosing(search(wiring_of(request), wanted, 0, MOST_SORTED)) as matches:
        async for match in matches:
            if not isinstance(match, Found):
                page.cut = True
                break
            page.damaged += [match.damaged] if match.damaged is not None else []
            rows += [match.row] if match.row is not None else []
    page.rows = sorting.sort(rows, _SORTED_BY)[place : place + PAGE]
    page.following = place + PAGE if len(rows) > place + PAGE else None
    return page
