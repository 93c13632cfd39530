"""Routes and pages of fire drills, for admins, and of second looks: calls that are judged again after a decision."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field

from sayso.core.canonical_json import JsonObject
from sayso.core.sentences.deadlines import Moment, compose
from sayso.core.text.language import _, mark
from sayso.core.transitions.second_look import LONGEST_REASON, Opinion
from sayso.errors import InvalidInput
from sayso.wire.channels import DrillList, DrillView, PlantedView, SecondLookList, SeenCallView, WaitingCallView
from sayso.wire.models import RequestBody
from service.core.desk.second_look import SeenCall
from service.core.wiring import Wiring
from service.edge.api.dependencies import Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.edge.web.additions import InboxLine, InboxSection
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.control.drills import drills_of, plant_drill
from service.features.control.store import Recents, WaitingCall, list_second_look

drills = APIRouter(prefix="/drills", tags=["reports"], route_class=SignedInRoute)


class DrillRequest(RequestBody):
    """The drill to plant."""

    template: str = Field(max_length=40, examples=["unknown-recipient"])
    reviewer: str = Field(max_length=64, description="The only reviewer who can decide it.", examples=["anna"])


@drills.get("", operation_id="listDrills", responses=problems(401, 403))
async def list_drills(_caller: Person, parts: Parts) -> DrillList:
    """List the templates of fire drills."""
    plan = drills_of(parts.settings.drills)
    return DrillList(every_h=plan.every_h, drills=[DrillView.model_validate(drill) for drill in plan.drills])


@drills.post("", status_code=201, operation_id="plantDrill", responses=problems(400, 401, 403, 404, 415))
async def plant(body: DrillRequest, caller: Person, parts: Parts) -> PlantedView:
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


_PAGE = "pages/drills.html"
_PLANTED = mark("The drill is planted. Only its reviewer can decide it; the insights show the result.")

router = APIRouter(route_class=RecordedRoute)


@router.get("/drills")
async def read_drills(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the templates of drills and the form that plants one."""
    return await show(request, visitor, _PAGE, **await _gather(request, {}), done=_PLANTED if done == "planted" else "")


@router.post("/drills")
async def plant_by_form(request: Request, visitor: SignedIn) -> Response:
    """Plant the drill of the form."""
    async with receive(request, visitor, _PAGE, partial(_gather, request)) as post:
        await plant_drill(wiring_of(request), post.get("template", ""), post.get("reviewer", ""), visitor.name)
    return RedirectResponse("/drills?done=planted", 303)


async def _gather(request: Request, typed: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    plan = drills_of(wiring.settings.drills)
    return {
        "title": _("Drills"),
        "plan": plan,
        "people": await wiring.reviewers.list_deciders(),
        "typed": typed,
    }


_SECOND_LOOK_PAGE = "pages/second-looks.html"
_OPINIONS = {"agree": True, "disagree": False}
VERDICTS = {
    "allowed": mark("allowed by the rules"),
    "approved": mark("approved"),
    "answered": mark("answered"),
    "denied": mark("denied"),
}


@router.get("/second-looks")
async def read_second_look(request: Request, visitor: SignedIn) -> Response:
    """Show the calls that wait for a second look."""
    return await show(request, visitor, _SECOND_LOOK_PAGE, **await _gather_second_look(request, visitor, {}))


@router.post("/second-looks")
async def take_by_form(request: Request, visitor: SignedIn) -> Response:
    """Take the second look of the form."""
    async with receive(request, visitor, _SECOND_LOOK_PAGE, partial(_gather_second_look, request, visitor)) as post:
        agrees, seq = _OPINIONS.get(post.get("opinion", "")), post.get("seq", "")
        if agrees is None or not (seq.isascii() and seq.isdigit()):
            raise InvalidInput(_("Choose one of the buttons on this page."))
        wiring = wiring_of(request)
        opinion, by = Opinion(agrees, post.get("reason", "")), visitor.principal.reviewer("web")
        await wiring.desk.take_second_look(
            post.get("run", ""), int(seq), opinion, by, wiring.part(Recents).second_look.waits
        )
    return RedirectResponse("/second-looks", 303)


async def _gather_second_look(request: Request, visitor: Visitor, _post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    calls = await list_second_look(wiring, visitor.principal.reviewer("web"))
    return {
        "title": _("Second looks"),
        "now_ms": await wiring.schedule.now_ms(),
        "mine": [call for call in calls if not call.refusal],
        "elsewhere": [call for call in calls if call.refusal],
        "verdicts": VERDICTS,
    }


_READ_FOR_INBOX, _IN_INBOX = 20, 3


async def add_to_inbox(wiring: Wiring, visitor: Visitor) -> InboxSection | None:
    """Return the first calls whose second look this person can take, among those that have waited longest."""
    total = await wiring.part(Recents).second_look.count()
    if not total:
        return None
    calls = await list_second_look(wiring, visitor.principal.reviewer("web"), _READ_FOR_INBOX)
    mine = [call for call in calls if not call.refusal]
    if not mine and total <= _READ_FOR_INBOX:
        return None
    lines = tuple(map(_write_line, mine[:_IN_INBOX]))
    return InboxSection("second-looks", _("Second looks"), "/second-looks", lines, len(mine) - len(lines))


def _write_line(waiting: WaitingCall) -> InboxLine:
    seen, at = waiting.call.seen, Moment(waiting.call.at_ms)
    verdict = _(VERDICTS.get(seen.verdict, seen.verdict))
    detail = compose("%(agent)s · %(verdict)s · %(at)s", agent=waiting.call.record.run.agent, verdict=verdict, at=at)
    return InboxLine(f"/second-looks#{waiting.run_id}-{waiting.seq}", (seen.tool,), detail)
