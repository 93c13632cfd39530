"""The page of the activity log, for admins and auditors."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.text.language import _
from service.auth.reviewers import require_log_reader
from service.store.directory.activity import Activity
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of

PAGE = 50

router = APIRouter()


@router.get("/activity")
async def read(request: Request, visitor: SignedIn, skip: Annotated[int, Query(ge=0, le=200_000)] = 0) -> Response:
    """Show what people did and what was refused, the newest first."""
    require_log_reader(visitor.principal.roles)
    found = await wiring_of(request).activity.read_page(skip, PAGE + 1)
    return await show(
        request,
        visitor,
        "pages/activity.html",
        title=_("Activity"),
        rows=[(one, write_facts(one)) for one in found.entries[:PAGE]],
        broken_at=found.broken_at,
        skip=skip,
        following=skip + PAGE if len(found.entries) > PAGE else None,
    )


def write_facts(entry: Activity) -> str:
    """Return the further facts of an entry as one text."""
    return ", ".join(f"{name}: {value}" for name, value in entry.data.items())
