"""The pages of fire drills, for admins, and of second looks: calls that are judged again after they were decided."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.text.language import _, mark
from sayso.core.transitions.second_look import Opinion
from sayso.errors import InvalidInput
from service.core.auth.reviewers import require_role
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.control.drills import drills_of, plant_drill
from service.features.control.store import Recents, list_second_look

_PAGE = "pages/drills.html"
_PLANTED = mark("The drill is planted. Only its reviewer can decide it; the insights show the result.")

router = APIRouter(route_class=RecordedRoute)


@router.get("/drills")
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the templates of drills and the form that plants one."""
    require_role(visitor.principal.roles, "admin")
    return await show(request, visitor, _PAGE, **await _gather(request, {}), done=_PLANTED if done == "planted" else "")


@router.post("/drills")
async def plant(request: Request, visitor: SignedIn) -> Response:
    """Plant the drill of the form."""
    async with receive(request, visitor, _PAGE, partial(_gather, request)) as post:
        require_role(visitor.principal.roles, "admin")
        await plant_drill(wiring_of(request), post.get("template", ""), post.get("reviewer", ""), visitor.name)
    return RedirectResponse("/drills?done=planted", 303)


async def _gather(request: Request, typed: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    people = await wiring.reviewers.list_all()
    plan = drills_of(wiring.settings.drills)
    return {
        "title": _("Drills"),
        "plan": plan,
        "people": sorted(person.name for person in people if person.active and "reviewer" in person.roles),
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
async def take(request: Request, visitor: SignedIn) -> Response:
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
