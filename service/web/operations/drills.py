"""The page of fire drills, for admins: plant a false call among a reviewer's items."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.text.language import _, mark
from sayso.errors import SaysoError
from service.auth.reviewers import require_role
from service.operations.drills.planting import plant_drill
from service.operations.drills.templates import drills_of
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_admin, describe_refusal, read_form
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of

_PAGE = "pages/drills.html"
_PLANTED = mark("The drill is planted. Only its reviewer can decide it; the insights show the result.")

router = APIRouter(route_class=RecordedRoute)


@router.get("/drills")
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the templates of drills and the form that plants one."""
    require_role(visitor.principal.roles, "admin")
    return await show(request, visitor, _PAGE, **await _gather(request, {}, done=_PLANTED if done == "planted" else ""))


@router.post("/drills")
async def plant(request: Request, visitor: SignedIn) -> Response:
    """Plant the drill of the form."""
    post = await read_form(request)
    try:
        check_admin(post, visitor)
        await plant_drill(wiring_of(request), post.get("template", ""), post.get("reviewer", ""), visitor.name)
    except SaysoError as error:
        context = await _gather(request, post, sentence=describe_refusal(error))
        show_page_again(request, _PAGE, visitor=visitor, **context)
        raise
    return RedirectResponse("/drills?done=planted", 303)


async def _gather(request: Request, typed: Post, **more: Any) -> dict[str, Any]:
    wiring = wiring_of(request)
    people = await wiring.reviewers.list_all()
    plan = drills_of(wiring.settings.drills)
    return {
        "title": _("Drills"),
        "plan": plan,
        "people": sorted(person.name for person in people if person.active and "reviewer" in person.roles),
        "typed": typed,
        "sentence": "",
        "done": "",
        **more,
    }
