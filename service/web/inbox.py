"""The inbox: all open items, sorted by deadline."""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from sayso.clock import now_ms
from service.store.suspensions.reading import split_readable
from service.web.content.cards import list_closed, make_cards
from service.web.pages import render, show
from service.web.sessions import SignedIn, wiring_of

PAGE = 50

router = APIRouter()

Skip = Annotated[int, Query(ge=0, le=1_000_000)]


@router.get("/")
async def inbox(request: Request, visitor: SignedIn, skip: Skip = 0) -> Response:
    """Show the open items."""
    wiring = wiring_of(request)
    ids = await wiring.runs.inbox(skip, PAGE)
    found = await wiring.desk.suspensions.read_page(ids)
    records, damaged = split_readable(found)
    freezes, definitions = await wiring.freezes.known(), await wiring.runs.find_definitions(records)
    reviewer = visitor.principal.reviewer("web")
    return await show(
        request,
        visitor,
        "pages/inbox.html",
        title="Inbox",
        cards=await asyncio.to_thread(make_cards, records, reviewer, freezes, now_ms(), definitions),
        damaged=damaged,
        skip=skip,
        page=PAGE,
        more=len(ids) == PAGE,
    )


@router.get("/rows")
async def read_rows(
    request: Request, visitor: SignedIn, ids: Annotated[str, Query(max_length=60 * PAGE)]
) -> HTMLResponse:
    """Return the rows of up to 50 suspensions, named in `ids` with commas between, for an open inbox."""
    wiring = wiring_of(request)
    records, _ = split_readable(await wiring.desk.suspensions.read_page(ids.split(",")[:PAGE]))
    reviewer, freezes, at_ms = visitor.principal.reviewer("web"), await wiring.freezes.known(), now_ms()
    definitions = await wiring.runs.find_definitions(records)
    cards = await asyncio.to_thread(make_cards, records, reviewer, freezes, at_ms, definitions)
    closings = list_closed(records)
    fill = partial(render, request, "pages/rows.html", title="Inbox", visitor=visitor, cards=cards, now_ms=at_ms)
    return await asyncio.to_thread(fill, closings=closings)


@router.get("/next")
async def open_next(request: Request, visitor: SignedIn) -> Response:
    """Lead to the item with the next deadline that the visitor may decide, or to the inbox."""
    wiring = wiring_of(request)
    records, _ = split_readable(await wiring.desk.suspensions.read_page(await wiring.runs.inbox(0, PAGE)))
    reviewer = visitor.principal.reviewer("web")
    cards = await asyncio.to_thread(make_cards, records, reviewer, await wiring.freezes.known(), now_ms())
    return RedirectResponse(next((card.href for card in cards if not card.ineligibility), "/"), 303)
