"""Let people in and out."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import NotAuthenticated, SaysoError
from service.credentials import TENANT
from service.web.errors import Problem, show_again
from service.web.pages import render
from service.web.posts import read_post
from service.web.sessions import (
    SignedIn,
    clear_session,
    find_visitor,
    safe_next,
    session_token,
    set_session,
    wiring_of,
)

router = APIRouter()


@router.get("/sign-in")
async def ask(request: Request, next: str | None = None) -> Response:
    """Show the form, or go on for those who are in."""
    place = safe_next(next)
    try:
        await find_visitor(request)
    except NotAuthenticated:
        return _form(request, place)
    return RedirectResponse(place, 303)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Open a session for the right name and password; any session this browser had is over."""
    wiring = wiring_of(request)
    post = await read_post(request, None)
    place, name = safe_next(post.get("next")), post.get("name", "").strip()
    address = request.client.host if request.client is not None else None
    try:
        opened = await wiring.reviewers.sign_in(TENANT, name, post.get("password", ""), address)
    except SaysoError as error:
        sentence = error.message
        show_again(request, lambda problem: _form(request, place, name, sentence, problem))
        raise
    await _close(request)
    response = RedirectResponse(place, 303)
    set_session(response, wiring.settings, opened.token)
    return response


@router.post("/sign-out")
async def sign_out(request: Request, visitor: SignedIn) -> Response:
    """Close the session."""
    await read_post(request, visitor)
    await _close(request)
    response = RedirectResponse("/sign-in", 303)
    clear_session(response, wiring_of(request).settings)
    return response


async def _close(request: Request) -> None:
    wiring = wiring_of(request)
    token = session_token(request, wiring.settings)
    if token is not None:
        await wiring.reviewers.sign_out(token)
        wiring.credentials.forget(token)


def _form(request: Request, place: str, name: str = "", sentence: str = "", problem: Problem | None = None) -> Response:
    return render(
        request,
        "pages/sign_in.html",
        title="Sign in",
        code=problem.status if problem is not None else 200,
        next=place,
        name=name,
        sentence=sentence,
    )
