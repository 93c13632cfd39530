"""The pages of authenticator apps: one's own, and another person's for admins."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from service.edge.web.pages import receive, show
from service.edge.web.sessions import RecordedRoute, SignedIn, Visitor, process_of
from service.features.codes.accounts import AppAccounts

PATH = "/me/codes"
_PAGE = "pages/codes.html"
_DONE = {
    "add": mark("The app is added. From now on a sign-in with your password asks for its code."),
    "remove": mark("The app is removed."),
}

router = APIRouter(route_class=RecordedRoute)


@router.get(PATH)
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the visitor's app, or the secret of the one that they are adding."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor), done=_DONE.get(done, ""))


@router.post(PATH)
async def change(request: Request, visitor: SignedIn) -> Response:
    """Begin, add or remove an app of the visitor."""
    accounts, by, token = _accounts(request), visitor.principal, visitor.token
    async with receive(request, visitor, _PAGE, lambda _post: _gather(request, visitor)) as post:
        act = post.get("act", "")
        if act == "begin":
            await accounts.begin(by, token)
        elif act == "add":
            await accounts.add(by, token, post.get("code", ""))
        elif act == "remove":
            await accounts.remove(by, token)
        else:
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
    return RedirectResponse(f"{PATH}?done={act}", 303)


@router.get("/people/{name}/codes")
async def read_of(request: Request, visitor: SignedIn, name: str, done: str = "") -> Response:
    """Show the app of a person."""
    return await show(request, visitor, _PAGE, **await _gather_of(request, name), done=_DONE.get(done, ""))


@router.post("/people/{name}/codes")
async def remove_of(request: Request, visitor: SignedIn, name: str) -> Response:
    """Remove the app of a person."""
    async with receive(request, visitor, _PAGE, lambda _post: _gather_of(request, name)):
        await _accounts(request).remove_of(visitor.principal, name)
    return RedirectResponse(f"/people/{name}/codes?done=remove", 303)


def _accounts(request: Request) -> AppAccounts:
    return process_of(request).wiring.feature(AppAccounts)


async def _gather(request: Request, visitor: Visitor) -> dict[str, Any]:
    accounts = _accounts(request)
    app = await accounts.find(visitor.name)
    begun = await accounts.find_begun(visitor.principal, visitor.token) if app is None else None
    return {"title": _("Authenticator app"), "person": "", "app": app, "begun": begun}


async def _gather_of(request: Request, name: str) -> dict[str, Any]:
    app = await _accounts(request).find(name)
    return {"title": _("Authenticator app of %(who)s", who=name), "person": name, "app": app, "begun": None}
