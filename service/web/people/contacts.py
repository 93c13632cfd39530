"""The channels on the account page: create a code, and unlink addresses."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import SaysoError
from service.auth.credentials import require_own_password
from service.web.form_posts import RecordedRoute, check_session, read_form
from service.web.pages import show
from service.web.people.accounts import PAGE, gather, show_again
from service.web.sessions import SignedIn, wiring_of

router = APIRouter(route_class=RecordedRoute)


@router.post("/me/contacts")
async def create_code(request: Request, visitor: SignedIn) -> Response:
    """Create a code and show it once."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        require_own_password(visitor.principal)
        code = await wiring_of(request).contacts.create_code(
            visitor.name, post.get("channel", "").strip(), visitor.principal.made
        )
    except SaysoError as error:
        await show_again(request, visitor, error, channel=post.get("channel", ""))
        raise
    return await show(request, visitor, PAGE, **{**await gather(request, visitor), "contact_code": code})


@router.post("/me/contacts/unlink")
async def unlink(request: Request, visitor: SignedIn) -> Response:
    """Unlink the address that the form names."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        await wiring_of(request).contacts.unlink(visitor.name, post.get("which", ""), visitor.name)
    except SaysoError as error:
        await show_again(request, visitor, error)
        raise
    return RedirectResponse("/me?done=contacts", 303)
