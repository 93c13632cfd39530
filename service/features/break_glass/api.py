"""Routes of emergency rights: take them, list them, and end them."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from sayso.wire.models import RequestBody
from sayso.wire.people import EmergencyList, EmergencyView
from service.edge.api.dependencies import OpenChannels, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.features.break_glass import breaking

router = APIRouter(prefix="/break-glass", tags=["reviewers"], route_class=SignedInRoute)

PersonName = Annotated[str, Path(min_length=1, max_length=100, examples=["ben"])]


class BreakGlassRequest(RequestBody):
    """Why the rights are needed."""

    reason: str = Field(max_length=2000, description="10 to 500 characters; everybody sees it.")


@router.get("", operation_id="listEmergencies", responses=problems(401, 403))
async def list_emergencies(_caller: Person, parts: Parts) -> EmergencyList:
    """List the emergency rights that last."""
    emergencies = await parts.roles.list_emergencies(fresh=True)
    return EmergencyList(emergencies=[EmergencyView.model_validate(emergency) for emergency in emergencies])


@router.post("", status_code=201, operation_id="breakGlass", responses=WRITES)
async def break_glass(body: BreakGlassRequest, caller: Person, parts: Parts, channels: OpenChannels) -> EmergencyView:
    """Take emergency rights for an hour: all but what lasts longer, such as people, groups, keys and grants.

    All other admins are informed at once, and others until they are two. Every page shows it while it lasts.
    """
    return EmergencyView.model_validate(await breaking.break_glass(parts, channels, caller, body.reason))


@router.delete("", status_code=204, operation_id="endOwnEmergency", responses=problems(401, 403, 404))
async def end_own_emergency(caller: Person, parts: Parts) -> None:
    """End the own emergency rights before their hour is over."""
    await breaking.end_own_emergency(parts, caller)


@router.delete("/{name}", status_code=204, operation_id="endEmergency", responses=problems(401, 403, 404))
async def end_emergency(name: PersonName, _caller: Person, parts: Parts) -> None:
    """End the emergency rights of a person."""
    await breaking.end_emergency(parts, name)
