"""The page of emergency rights: who has them, and the form to take them."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from service.channels.kinds import Channels
from service.core.auth.roles import EMERGENCY
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, read_post, wiring_of
from service.features.break_glass import breaking

PATH = "/break-glass"
_PAGE = "pages/break_glass.html"
_DONE = {
    "break": mark("You have emergency rights, and others are informed."),
    "end": mark("The emergency rights have ended."),
}

router = APIRouter(route_class=RecordedRoute)


@router.get(PATH)
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the emergency rights that last."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}), done=_DONE.get(done, ""))


@router.post(PATH)
async def change(request: Request, visitor: SignedIn) -> Response:
    """Take emergency rights, or end the own ones."""
    channels: Channels = request.app.state.channels

    async def gather(post: Post) -> dict[str, object]:
        return await _gather(request, visitor, post)

    async with receive(request, visitor, _PAGE, gather) as post:
        act = post.get("act", "")
        if act == "break":
            await breaking.break_glass(wiring_of(request), channels, visitor.principal, post.get("reason", ""))
        elif act == "end":
            await breaking.end_own_emergency(wiring_of(request), visitor.principal)
        else:
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
    wiring_of(request).credentials.forget(visitor.token)  # its rights have changed
    return RedirectResponse(f"{PATH}?done={act}", 303)


@router.post(f"{PATH}/{{name}}")
async def end(request: Request, visitor: SignedIn, name: str) -> Response:
    """End the emergency rights of a person."""
    await read_post(request, visitor)
    await breaking.end_emergency(wiring_of(request), name)
    return RedirectResponse(f"{PATH}?done=end", 303)


async def _gather(request: Request, visitor: Visitor, post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    rights = await wiring.reviewers.find_rights(visitor.name)
    emergencies = await wiring.roles.list_emergencies(fresh=True)
    has = visitor.name in {emergency.person for emergency in emergencies} or all(map(rights.has, EMERGENCY))
    return {
        "title": _("Emergency rights"),
        "lasting": emergencies,
        "takes": not has,
        "reason": post.get("reason", ""),
        "most": breaking.MOST_CHARS,
    }
