"""Routes of the history: decided items page by page, and as a file."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from sayso.errors import InvalidInput
from sayso.wire.channels import HistoryPage
from service.edge.api.dependencies import Limit, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.history.searching import STATES, Filter, Form, Text, export_matches, list_page, read_filter

router = APIRouter(prefix="/history", tags=["reports"], route_class=SignedInRoute)


async def check_filter(wanted: Annotated[Filter, Depends(read_filter)], verdict: Text = "") -> Filter:
    """Return the filter of a request. Raises `InvalidInput` for an unknown verdict or filter of the search."""
    if verdict and not wanted.verdict:
        raise InvalidInput(f"verdict={verdict!r} is unknown. Give one of {', '.join(STATES)}.", parameter="verdict")
    if wanted.parsed.problem:
        raise InvalidInput(wanted.parsed.problem, parameter="q")
    return wanted


Wanted = Annotated[Filter, Depends(check_filter)]


@router.get("", operation_id="listHistory", responses=problems(400, 401, 403))
async def list_history(
    _caller: Person,
    parts: Parts,
    wanted: Wanted,
    cursor: Annotated[str, Query(max_length=100, description="`next_cursor` of the page before.")] = "",
    limit: Limit = 100,
) -> HistoryPage:
    """List decided items that match, the latest first. `q` is a search as on the page of the history."""
    return await list_page(parts, wanted, cursor, limit)


@router.get(
    "/export",
    operation_id="exportHistory",
    response_class=StreamingResponse,
    responses={**problems(400, 401, 403), 200: {"content": {"text/csv": {}, "application/json": {}}}},
)
async def export_history(_caller: Person, parts: Parts, wanted: Wanted, format: Form = "json") -> StreamingResponse:
    """Send all decided items that match as JSON, or as a CSV that no spreadsheet evaluates."""
    return export_matches(parts, wanted, format)
