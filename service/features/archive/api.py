"""Archived runs by day: a route and a page. By id, they are read like others."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.core.text.language import _
from sayso.errors import InvalidInput, SaysoError
from sayso.wire.evidence import ArchivedRunPage, ArchivedRunView
from service.core.wiring import Wiring
from service.edge.api.dependencies import Limit, Parts, Person, Skip
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.edge.web.pages import show
from service.edge.web.sessions import RecordedRoute, SignedIn, wiring_of
from service.features.archive.desk import archive_of
from service.features.archive.segments import Summary

PAGE = 50

Day = Annotated[str, Query(max_length=10, description="A day in UTC, such as 2026-10-31; empty for the last one.")]


class _RunsOfDay(NamedTuple):
    """Some archived runs of a day, and the days with runs before and after it; `day` is empty without an archive."""

    day: str
    runs: list[Summary]
    earlier: str = ""
    later: str = ""


async def read_archive(wiring: Wiring, day: str, skip: int, limit: int) -> _RunsOfDay:
    """Return archived runs that began on a day, the first first. Raises `InvalidInput`, and as `RunArchive.open`."""
    archive = archive_of(wiring.store)
    day = day or await wiring.store.archive.find_last_day()
    if archive is None or not day:
        return _RunsOfDay("", [])
    try:
        begin = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    except ValueError:
        raise InvalidInput(f"{day!r} is not a day. Give one such as 2026-10-31.", parameter="day") from None
    begin_ms, end_ms = (round((begin + timedelta(days=days)).timestamp() * 1000) for days in (0, 1))
    earlier, later = await archive.find_days_beside(begin_ms, end_ms)
    return _RunsOfDay(day, await archive.list_summaries(begin_ms, end_ms, skip, limit), earlier, later)


router = APIRouter(prefix="/archive", tags=["runs"], route_class=SignedInRoute)


@router.get("", operation_id="listArchivedRuns", responses=problems(400, 401, 403))
async def list_archived_runs(
    _caller: Person, parts: Parts, day: Day = "", skip: Skip = 0, limit: Limit = 50
) -> ArchivedRunPage:
    """List archived runs that began on a day, the first first. `getRun` reads one back by its id."""
    archived = await read_archive(parts, day, skip, limit)
    return ArchivedRunPage(day=archived.day, runs=[ArchivedRunView.model_validate(run) for run in archived.runs])


pages = APIRouter(route_class=RecordedRoute)


@pages.get("/archive")
async def show_archive(
    request: Request, visitor: SignedIn, day: Day = "", skip: Annotated[int, Query(ge=0, le=10**7)] = 0
) -> Response:
    """Show the archived runs that began on a day."""
    problem, archived = "", _RunsOfDay(day, [])
    try:
        archived = await read_archive(wiring_of(request), day, skip, PAGE + 1)
    except SaysoError as error:
        problem = error.message
    return await show(
        request,
        visitor,
        "pages/archive.html",
        title=_("Archive"),
        archived=archived,
        runs=archived.runs[:PAGE],
        skip=skip,
        following=skip + PAGE if len(archived.runs) > PAGE else None,
        problem=problem,
    )
