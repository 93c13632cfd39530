"""Routes of groups: everybody who reviews reads them, admins and editors change them."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from sayso.core.calendar import WorkingHours
from service.api.people.accounts import Member
from service.api.routing.dependencies import Admin, Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, Timestamp, View
from service.auth.groups import MOST_MEMBERS
from service.http.openapi import WRITES, problems

router = APIRouter(prefix="/groups", tags=["groups"], route_class=SignedInRoute)

GroupName = Annotated[str, Path(min_length=1, max_length=100, examples=["payments"])]
Names = Annotated[tuple[Annotated[str, Field(max_length=64)], ...], Field(max_length=MOST_MEMBERS)]
_PROBLEMS = problems(401, 403, 404)


class GroupChange(RequestBody):
    """The people of a group, as a whole."""

    members: Names = Field(description="Who may decide where a rule names the group.", examples=[["anna", "ben"]])
    editors: Names = Field(
        default=(), description="Who may change the members beside admins. Only admins change it.", examples=[["anna"]]
    )
    working_hours: WorkingHours | None = None


class GroupRequest(GroupChange):
    """A new group."""

    name: str = Field(min_length=1, max_length=64, description="Rules name it `group:<name>`.", examples=["payments"])


class GroupView(View):
    """Reviewers under one name, which rules write as `group:<name>`."""

    name: str
    members: tuple[str, ...]
    editors: tuple[str, ...]
    working_hours: WorkingHours | None
    created_at: Timestamp = Field(validation_alias="created_at_ms")


class GroupList(BaseModel):
    """All groups by name."""

    groups: list[GroupView]


@router.get("", operation_id="listGroups", responses=problems(401, 403))
async def list_groups(caller: Person, parts: Parts) -> GroupList:
    """List all groups."""
    return GroupList(groups=[GroupView.model_validate(group) for group in await parts.groups.list_all()])


@router.post("", status_code=201, operation_id="createGroup", responses=WRITES)
async def create_group(body: GroupRequest, caller: Admin, parts: Parts) -> GroupView:
    """Create a group of active reviewers."""
    made = await parts.groups.create(body.name, body.members, body.editors, caller.name, body.working_hours)
    return GroupView.model_validate(made)


@router.get("/{group}", operation_id="readGroup", responses=_PROBLEMS)
async def read_group(group: GroupName, caller: Person, parts: Parts) -> GroupView:
    """Read a group."""
    return GroupView.model_validate(await parts.groups.read(group))


@router.put("/{group}", operation_id="changeGroup", responses=WRITES)
async def change_group(group: GroupName, body: GroupChange, caller: Member, parts: Parts) -> GroupView:
    """Replace a group's members, editors and working hours. Open items follow the members within a second."""
    saved = await parts.groups.update(
        group, body.members, body.editors, caller.name, caller.roles, working_hours=body.working_hours
    )
    return GroupView.model_validate(saved)


@router.delete("/{group}", status_code=204, operation_id="deleteGroup", responses=_PROBLEMS)
async def delete_group(group: GroupName, caller: Admin, parts: Parts) -> None:
    """Delete a group. Nobody decides for it where rules and open items still name it."""
    await parts.groups.delete(group, caller.name)
