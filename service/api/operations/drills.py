"""Routes of fire drills, for admins."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from sayso.core.canonical_json import JsonObject
from service.api.routing.dependencies import Admin, Parts
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, View
from service.http.openapi import problems
from service.operations.drills.planting import plant_drill
from service.operations.drills.templates import drills_of

router = APIRouter(prefix="/drills", tags=["reports"], route_class=SignedInRoute)


class DrillView(View):
    """A template of a false call."""

    id: str
    agent: str
    requested_by: str
    tool: str
    args: JsonObject
    signs: list[str] = Field(description="What the reviewer reads after the decision.")


class DrillList(BaseModel):
    """The templates of the drills file."""

    every_h: int = Field(description="The hours between scheduled drills; 0 for none.")
    drills: list[DrillView]


class DrillRequest(RequestBody):
    """The drill to plant."""

    template: str = Field(max_length=40, examples=["unknown-recipient"])
    reviewer: str = Field(max_length=64, description="The only reviewer who can decide it.", examples=["anna"])


class PlantedView(BaseModel):
    """A planted drill."""

    suspension_id: str
    item_id: str


@router.get("", operation_id="listDrills", responses=problems(401, 403))
async def list_drills(_caller: Admin, parts: Parts) -> DrillList:
    """List the templates of fire drills."""
    plan = drills_of(parts.settings.drills)
    return DrillList(every_h=plan.every_h, drills=[DrillView.model_validate(drill) for drill in plan.drills])


@router.post("", status_code=201, operation_id="plantDrill", responses=problems(400, 401, 403, 404, 415))
async def plant(body: DrillRequest, caller: Admin, parts: Parts) -> PlantedView:
    """Plant a false call among a reviewer's items. Its permit is void."""
    record = await plant_drill(parts, body.template, body.reviewer, caller.name)
    return PlantedView(suspension_id=record.id, item_id=record.items[0].item_id)
