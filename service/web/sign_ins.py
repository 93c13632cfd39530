"""Let people in and out."""

import re

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import NotAuthenticated, SaysoError
from sayso.problems import Problem
from service.auth.credentials import TENANT
from service.auth.hosts import origin_of
from service.web.errors import show_again
from service.web.form_posts import Post, read_form, read_post
from service.web.pages import render
from service.web.sessions import (
    SignedIn,
    Visitor,
    clear_session,
    find_visitor,
    process_of,
    safe_next,
    session_token,
    set_session,
)

_SHOWN_AGAIN = re.compile(r"/items/[\w-]+/[\w-]+|/runs/[\w-]+/cancel|/freezes", re.ASCII)
"""The pages that show again what was typed into them before a sign-in."""

router = APIRouter()


@router.get("/sign-in")
async def ask(request: Request, next: str | None = None) -> Response:
    """Show the form, or go on for those who are in."""
    place = safe_next(next)
    try:
        await find_visitor(request)
    except NotAuthenticated:
        return show_sign_in(request, place)
    return RedirectResponse(place, 303)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Open a session for the right name and password; any session this browser had is over."""
    wiring = process_of(request).tenant(TENANT)
    post = await read_form(request)
    place, name = safe_next(post.get("next")), post.get("name", "").strip()
    try:
        opened = await wiring.reviewers.sign_in(name, post.get("password", ""), origin_of(request))
    except SaysoError as error:
        sentence = error.message
        show_again(request, lambda problem: show_sign_in(request, place, name, sentence, problem, keep_typed(post)))
        raise
    await _close(request)
    # With 307 the browser brings along what was typed before; it has no token of this session, so it is only shown.
    response = RedirectResponse(place, 307 if keep_typed(post) and _SHOWN_AGAIN.fullmatch(place) else 303)
    set_session(response, wiring.settings, opened.token)
    return response


@router.post("/sign-out")
async def sign_out(request: Request, visitor: SignedIn) -> Response:
    """Close the session."""
    await read_post(request, visitor)
    await _close(request)
    response = RedirectResponse("/sign-in", 303)
    clear_session(response, process_of(request).settings)
    return response


async def _close(request: Request) -> None:
    process = process_of(request)
    token = session_token(request, process.settings)
    if token is not None:
        await process.credentials.sign_out(token)


async def find_sender(request: Request, post: Post) -> Visitor:
    """Return who is signed in; who no longer is signs in first, and then finds again what was typed."""
    try:
        return await find_visitor(request)
    except NotAuthenticated:
        kept, said = keep_typed(post), "You were signed out. Sign in to continue with your input."
        if kept:
            show_again(request, lambda problem: show_sign_in(request, request.url.path, "", said, problem, kept))
        raise


def keep_typed(post: Post) -> Post:
    """Return what was typed into the form that was sent without a session; nothing where nothing is typed in it."""
    if "answer" not in post and "reason" not in post:
        return {}
    return {name: text for name, text in post.items() if name not in ("csrf", "next", "name", "password")}


def show_sign_in(
    request: Request,
    place: str,
    name: str = "",
    sentence: str = "",
    problem: Problem | None = None,
    kept: Post | None = None,
) -> Response:
    """Return the sign-in page, which carries what is kept on to the page it leads to."""
    return render(
        request,
        "pages/sign_in.html",
        title="Sign in",
        code=problem.status if problem is not None else 200,
        next=place,
        name=name,
        sentence=sentence,
        kept=kept or {},
    )
