"""Routes of roles: list them, and make roles of permissions that the maker has."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from sayso.core.clock import now_ms
from sayso.core.records.decisions import Limit
from sayso.wire.models import RequestBody
from sayso.wire.people import RoleList, RoleView
from service.core.auth.roles import PERMISSIONS, ROLES
from service.core.operations.people import delete_role as delete_unused
from service.core.store.directory import Role
from service.edge.api.dependencies import Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems

router = APIRouter(prefix="/roles", tags=["reviewers"], route_class=SignedInRoute)

RoleName = Annotated[str, Path(min_length=1, max_length=100, examples=["refunds_team"])]
Patterns = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=100)]


class RoleRequest(RequestBody):
    """What a role lets a person do, as a whole."""

    permissions: Annotated[tuple[str, ...], Field(min_length=1, max_length=50, examples=[["read_items", "decide"]])]
    tools: Patterns = Field(default=(), description="Decide calls of tools that fit one of these patterns.")
    agents: Patterns = Field(default=(), description="Decide calls of agents that fit one of these patterns.")
    groups: Patterns = Field(default=(), description="Decide what one of these groups is asked.")


@router.get("", operation_id="listRoles", responses=problems(401, 403))
async def list_roles(_caller: Person, parts: Parts) -> RoleList:
    """List the built-in roles and those that admins made."""
    built_in = [
        RoleView(name=name, permissions=tuple(known for known in PERMISSIONS if known in permissions), built_in=True)
        for name, permissions in ROLES.items()
    ]
    return RoleList(roles=[*built_in, *map(_view, await parts.roles.list_all())])


@router.put("/{role}", operation_id="saveRole", responses=WRITES)
async def save_role(role: RoleName, body: RoleRequest, caller: Person, parts: Parts) -> RoleView:
    """Create or change a role, for those who have it within a second. It may do no more than its maker."""
    limit = Limit(tools=body.tools, agents=body.agents, groups=body.groups)
    made = Role(
        name=role,
        permissions=tuple(dict.fromkeys(body.permissions)),
        limit=limit if limit != Limit() else None,
        made_by=caller.name,
        made_at_ms=now_ms(),
    )
    return _view(await parts.roles.save(made, caller.lasting))


@router.delete("/{role}", status_code=204, operation_id="deleteRole", responses=problems(401, 403, 404, 409))
async def delete_role(role: RoleName, _caller: Person, parts: Parts) -> None:
    """Delete a role that nobody has."""
    await delete_unused(parts, role)


def _view(role: Role) -> RoleView:
    limit = role.limit or Limit()
    return RoleView(name=role.name, permissions=role.permissions, **limit.model_dump())
