"""Routes of fire drills, for admins, and of second looks."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import Field

from sayso.core.canonical_json import JsonObject
from sayso.core.transitions.second_look import LONGEST_REASON, Opinion
from sayso.wire.channels import DrillList, DrillView, PlantedView, SecondLookList, SeenCallView, WaitingCallView
from sayso.wire.models import RequestBody
from service.core.desk.second_look import SeenCall
from service.edge.api.dependencies import Admin, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.features.control.drills import drills_of, plant_drill
from service.features.control.store import Recents, list_second_look

drills = APIRouter(prefix="/drills", tags=["reports"], route_class=SignedInRoute)


class DrillRequest(RequestBody):
    """The drill to plant."""

    template: str = Field(max_length=40, examples=["unknown-recipient"])
    reviewer: str = Field(max_length=64, description="The only reviewer who can decide it.", examples=["anna"])


@drills.get("", operation_id="listDrills", responses=problems(401, 403))
async def list_drills(_caller: Admin, parts: Parts) -> DrillList:
    """List the templates of fire drills."""
    plan = drills_of(parts.settings.drills)
    return DrillList(every_h=plan.every_h, drills=[DrillView.model_validate(drill) for drill in plan.drills])


@drills.post("", status_code=201, operation_id="plantDrill", responses=problems(400, 401, 403, 404, 415))
async def plant(body: DrillRequest, caller: Admin, parts: Parts) -> PlantedView:
    """Plant a false call among a reviewer's items. Its permit is void."""
    record = await plant_drill(parts, body.template, body.reviewer, caller.name)
    return PlantedView(suspension_id=record.id, item_id=record.items[0].item_id)


second_look = APIRouter(prefix="/second-looks", tags=["reports"], route_class=SignedInRoute)

RunId = Annotated[str, Path(min_length=1, max_length=100, examples=["run_019aa4a2f4a5b6c7d8e9f0a1b2c3d4e5"])]
Seq = Annotated[int, Path(ge=1, le=2**53, description="The number of the event that allowed or decided the call.")]


class OpinionRequest(RequestBody):
    """What you think of the call."""

    opinion: Literal["agree", "disagree"]
    reason: str = Field(default="", max_length=LONGEST_REASON, description="What was wrong; needed to disagree.")


@second_look.get("", operation_id="listSecondLooks", responses=problems(401, 403))
async def list_waiting(caller: Person, parts: Parts) -> SecondLookList:
    """List calls that were drawn by chance for a second look, up to 50."""
    waiting = await list_second_look(parts, caller.reviewer("api"))
    calls = [
        WaitingCallView.model_validate(_describe(entry.call, entry.seq) | {"may_take": not entry.refusal})
        for entry in waiting
    ]
    return SecondLookList(calls=calls, total=await parts.part(Recents).second_look.count())


@second_look.post("/{run_id}/{seq}", operation_id="takeSecondLook", responses=WRITES)
async def take(run_id: RunId, seq: Seq, body: OpinionRequest, caller: Person, parts: Parts) -> SeenCallView:
    """Say whether the call was right. It changes nothing about the call; the trail and the insights record it."""
    opinion = Opinion(body.opinion == "agree", body.reason)
    by = caller.reviewer("api")
    call = await parts.desk.take_second_look(run_id, seq, opinion, by, parts.part(Recents).second_look.waits)
    return SeenCallView.model_validate(_describe(call, seq))


def _describe(call: SeenCall, seq: int) -> JsonObject:
    suspension_id, item_id = call.item or (None, None)
    return {
        "run_id": call.record.run.id,
        "seq": seq,
        "agent": call.record.run.agent,
        "tool": call.seen.tool,
        "args": call.args,
        "rule_id": call.seen.rule_id,
        "verdict": call.seen.verdict,
        "decided_by": [*call.seen.deciders],
        "at_ms": call.at_ms,
        "suspension_id": suspension_id,
        "item_id": item_id,
    }
