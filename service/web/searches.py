"""Search by ID: redirect to the page of a run or suspension."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import NotFound
from sayso.text.language import _
from service.store.suspensions.reading import UnreadableRecord, describe_unreadable
from service.web.content.cards import item_href
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of

router = APIRouter()


@router.get("/search")
async def search(request: Request, visitor: SignedIn, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Redirect to the run or suspension with this ID, or show that there is none."""
    wanted = q.strip()
    place = await find_place(request, wanted) if wanted else None
    if place is not None:
        return RedirectResponse(place, 303)
    return await show(request, visitor, "pages/search.html", title=_("Search"), code=404 if wanted else 200, q=wanted)


async def find_place(request: Request, wanted: str) -> str | None:
    """Return the path of the run or suspension with this ID, or None."""
    wiring = wiring_of(request)
    try:
        return f"/runs/{(await wiring.runs.read(wanted)).id}"
    except NotFound:
        found = await wiring.desk.suspensions.read_page([wanted])
    if not found:
        return None
    record = found[0]
    if isinstance(record, UnreadableRecord):
        raise describe_unreadable(record)
    return item_href(record, record.items[0]) if record.items else f"/runs/{record.run.id}"
