"""The inbox: open items, sorted by deadline, with a search."""

import asyncio
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.text.language import _
from service.core.concurrency import release_apart
from service.core.operations import queries
from service.core.operations.queries import LONGEST_SEARCH
from service.core.store.precedents import Precedents
from service.core.store.suspensions.reading import split_readable
from service.edge.web.additions import InboxSection, additions_of
from service.edge.web.content.cards import Card, describe_finished, group_cards, list_closed, make_cards
from service.edge.web.content.finding import PAGE, Found, find_again, find_open, read_cursor, read_filters
from service.edge.web.content.tables import MOST, make_inbox_rows, make_tables
from service.edge.web.pages import render, show
from service.edge.web.runs import find_place
from service.edge.web.sessions import SignedIn, Visitor, delete_cookie, set_cookie, wiring_of

_MOST_FINISHED = 100
_MINE = queries.parse_query("is:mine")

SKIPPED = "sayso_skipped"
"""The cookie of an admin who skipped the first steps, to which the inbox of a new desk leads."""

LIST_COOKIE = "sayso_list"
"""The cookie with the search of the list that was seen last."""

router = APIRouter()

After = Annotated[str, Query(max_length=100)]
Text = Annotated[str, Query(max_length=LONGEST_SEARCH)]


@router.get("/inbox")
async def redirect(request: Request) -> Response:
    """Lead to the inbox, which is the first page."""
    query = request.url.query
    return RedirectResponse(f"/?{query}" if query else "/", 308)


@router.get("/")
async def inbox(
    request: Request,
    visitor: SignedIn,
    after: After = "",
    q: Text = "",
    kept: Annotated[str, Query(max_length=60 * PAGE)] = "",
    searched: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Response:
    """Show the open items that fit the search, behind those of the suspensions in `kept`, which it found before."""
    if not visitor.rights.has("read_items"):
        return RedirectResponse("/me", 303)
    wiring, place = wiring_of(request), read_cursor(after)
    is_first_look = not q and not after and visitor.rights.has("set_up") and SKIPPED not in request.cookies
    if is_first_look and not await wiring.runs.decided(limit=1):
        return RedirectResponse("/welcome", 303)
    if target := await find_place(request, q):
        return RedirectResponse(target, 303)
    query = await asyncio.to_thread(queries.parse_query, q)
    reviewer, since_ms = visitor.principal.reviewer("web"), monotonic_ms()
    filters = await read_filters(wiring, reviewer, query, now_ms(), since_ms)
    earlier = await find_again(wiring, reviewer, query, kept.split(","), searched) if kept else Found(searched=searched)
    page = Found() if query.problem else await find_open(wiring, reviewer, query, place, since_ms, earlier)
    finished = ""
    if not (page.cards or query or after):
        ids = await wiring.runs.decided(0, _MOST_FINISHED)
        records, _damaged = split_readable(await wiring.desk.suspensions.read_page(ids))
        finished = describe_finished(records, now_ms(), cut=len(ids) == _MOST_FINISHED)
    added: dict[str, Any] = {}
    for addition in additions_of(request):
        added |= await addition.inbox(wiring, visitor.name) if addition.inbox is not None else {}
    asides = [] if query or after else await _list_sections(request, visitor)
    response = await show(
        request,
        visitor,
        "pages/inbox.html",
        title=_("Inbox"),
        since_ms=since_ms,
        search=query.text,
        query=query,
        page=page,
        sections=group_cards(await asyncio.to_thread(make_inbox_rows, page.cards)),
        after=after,
        filters=filters,
        most=MOST,
        waiting=await wiring.runs.count_pending() if filters.waiting is None else filters.waiting,
        finished=finished,
        asides=asides,
        **added,
    )
    release_apart(page.cards)
    remember_search(request, response, query.text)
    return response


def remember_search(request: Request, response: Response, search: str) -> None:
    """Keep the search of the list for its next item, which a link without scripts does not name."""
    settings, known = wiring_of(request).settings, request.cookies.get(LIST_COOKIE)
    if search and quote(search) != known:
        set_cookie(response, settings, LIST_COOKIE, quote(search), settings.session_max_s)
    elif known and not search:
        delete_cookie(response, settings, LIST_COOKIE)


async def _list_sections(request: Request, visitor: Visitor) -> list[InboxSection]:
    makers = [addition.section for addition in additions_of(request) if addition.section is not None]
    sections = await asyncio.gather(*(make(wiring_of(request), visitor) for make in makers))
    return [section for section in sections if section is not None]


@router.get("/rows")
async def read_rows(
    request: Request,
    visitor: SignedIn,
    ids: Annotated[str, Query(max_length=60 * PAGE)],
    q: Text = "",
    alike: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Return the rows of up to 50 suspensions, named in `ids` with commas between, for an open inbox.

    With `alike`, return one row for all items with this name, however few.
    """
    wiring = wiring_of(request)
    records, _unreadable = split_readable(await wiring.desk.suspensions.read_page(ids.split(",")[:PAGE]))
    reviewer, freezes, at_ms = visitor.principal.reviewer("web"), await wiring.freezes.known(), now_ms()
    definitions, query = await wiring.runs.find_definitions(records), await asyncio.to_thread(queries.parse_query, q)
    facts = (reviewer, freezes, at_ms, query, definitions, await wiring.part(Precedents).find_earlier(records))

    def fill() -> tuple[Response, list[Card]]:
        cards = make_cards(records, *facts)
        rows = make_tables([card for card in cards if card.alike == alike], 1)[0] if alike else cards
        closings = list_closed(records)
        response = render(
            request, "pages/rows.html", title=_("Inbox"), visitor=visitor, cards=rows, closings=closings, now_ms=at_ms
        )
        return response, cards

    response, cards = await asyncio.to_thread(fill)
    release_apart((*records, *cards))
    return response


@router.get("/next")
async def open_next(
    request: Request,
    visitor: SignedIn,
    after: Annotated[str, Query(max_length=200)] = "",
    before: Annotated[str, Query(max_length=200)] = "",
    q: Annotated[str | None, Query(max_length=LONGEST_SEARCH)] = None,
) -> Response:
    """Lead to the visitor's next item by deadline that fits the search, or to the one before `before`.

    Without `q` the search is that of the list seen last. Without an item, lead to the inbox.
    """
    q = unquote(request.cookies.get(LIST_COOKIE, ""))[:LONGEST_SEARCH] if q is None else q
    wiring, reviewer = wiring_of(request), visitor.principal.reviewer("web")
    query = await asyncio.to_thread(queries.parse_query, f"is:mine {q}")
    mine = (await find_open(wiring, reviewer, _MINE if query.problem else query)).cards
    if before:
        mine.reverse()
    place = next((place for place, card in enumerate(mine) if card.row_id == (before or after)), -1)
    others = [*mine[place + 1 :], *mine[: max(place, 0)]]
    return RedirectResponse(others[0].href if others else f"/?{urlencode({'q': q})}" if q else "/", 303)
