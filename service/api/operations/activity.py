"""The route of the activity log, for admins and auditors."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from sayso.core.canonical_json import JsonObject
from service.api.routing.dependencies import Limit, Parts, Person, Skip
from service.api.routing.routes import SignedInRoute
from service.api.views.base import Timestamp, View
from service.auth.credentials import Principal
from service.auth.reviewers import require_log_reader
from service.http.openapi import problems

router = APIRouter(prefix="/activity", tags=["activity"], route_class=SignedInRoute)


async def reader_of(person: Person) -> Principal:
    """Return the calling admin or auditor; raises `NotAllowed` for others."""
    require_log_reader(person.roles)
    return person


class ActivityView(View):
    """One act, or one refusal; `hash` covers it and the hash of the entry before it."""

    seq: int
    at: Timestamp = Field(validation_alias="at_ms")
    act: str = Field(examples=["key_created"])
    by: str = Field(description="Who did it; empty for somebody who has not signed in.")
    door: str = Field(description="How: `web`, `api`, the name of a channel, or `setup`.")
    address: str = Field(description="The address of the client; empty if unknown.")
    target: str = Field(description="What it was done to: the id of a key, the name of a person, and so on.")
    outcome: str = Field(description="`done` or `refused`.")
    times: int = Field(description="Of a refusal: how many of this source there were in the hour.")
    data: JsonObject
    before: str = Field(description="The hash of the entry before; empty for the first.")
    hash: str


class ActivityList(BaseModel):
    """Entries, the newest first."""

    activity: list[ActivityView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")
    broken_at: int | None = Field(description="The first entry of this page that does not fit the chain; else null.")


@router.get("", operation_id="listActivity", responses=problems(401, 403))
async def list_activity(
    caller: Annotated[Principal, Depends(reader_of)], parts: Parts, skip: Skip = 0, limit: Limit = 50
) -> ActivityList:
    """List what people did and what was refused, the newest first: sign-ins, keys, people, freezes, rules and more."""
    page = await parts.activity.read_page(skip, limit + 1)
    more = len(page.entries) > limit
    return ActivityList(
        activity=[ActivityView.model_validate(entry) for entry in page.entries[:limit]],
        next_skip=skip + limit if more else None,
        broken_at=page.broken_at,
    )
