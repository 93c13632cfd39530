"""Sign in and sign out."""

import re

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.problems import Problem
from sayso.core.text.language import _, mark
from sayso.errors import Altered, NotAuthenticated, SaysoError, TooLarge, WrongCode
from service.core.auth.hosts import origin_of
from service.core.auth.reviewers import hash_token
from service.core.operations.people import keep_password
from service.core.operations.people import sign_in as sign_in_by
from service.core.store.people import PasswordGiven, Session
from service.edge.http.middleware import STRANGER_BYTES
from service.edge.web.additions import additions_of
from service.edge.web.pages import render, show_again
from service.edge.web.sessions import (
    Post,
    RecordedRoute,
    SignedIn,
    Visitor,
    clear_session,
    find_visitor,
    process_of,
    read_form,
    read_post,
    safe_next,
    session_token,
    set_session,
)

_KEEPING_PAGES = re.compile(r"/items/[\w-]+/[\w-]+|/runs/[\w-]+/cancel|/operate|/batch", re.ASCII)
"""Pages that show the input from before a sign-in again."""

_KEPT_BYTES = STRANGER_BYTES - 4_096  # the sign-in sends the input again, with a name, a password and a place
_OWN_FIELDS = ("csrf", "next", "name", "password", "begun", "code")
_TOO_LONG = mark(
    "You were signed out. Nothing was changed. Your input is too long to be kept here: "
    "sign in in another tab, then reload this page to send it again."
)

router = APIRouter(route_class=RecordedRoute)


@router.get("/sign-in")
async def ask(request: Request, next: str | None = None) -> Response:
    """Show the form, or redirect a signed-in person."""
    place = safe_next(next)
    try:
        await find_visitor(request)
    except (NotAuthenticated, Altered):
        return show_sign_in(request, place)
    return RedirectResponse(place, 303)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Open a session, and end this browser's previous one."""
    wiring = process_of(request).wiring
    post = await read_form(request)
    place, name, begun = safe_next(post.get("next")), post.get("name", "").strip(), post.get("begun", "")
    try:
        password, code = post.get("password", ""), post.get("code", "")
        opened = await sign_in_by(wiring, name, password, origin_of(request), "web", code, begun)
    except SaysoError as error:
        sentence, kept = error.message, keep_input(post)
        again = begun if isinstance(error, WrongCode) else ""
        show_again(request, lambda problem: show_sign_in(request, place, name, sentence, problem, kept, again))
        raise
    if isinstance(opened, PasswordGiven):
        begun = begun or await keep_password(wiring, opened)
        return show_sign_in(request, place, kept=keep_input(post), begun=begun)
    await close_session(request)
    if opened.password_by and not keep_input(post):
        place = "/me"  # it asks for another password
    # With 307 the browser resends the earlier form. Its CSRF token is old, so the page only shows the input.
    response = RedirectResponse(place, 307 if keep_input(post) and _KEEPING_PAGES.fullmatch(place) else 303)
    set_session(response, wiring.settings, opened.token)
    return response


@router.post("/sign-out")
async def sign_out(request: Request, visitor: SignedIn) -> Response:
    """End the session."""
    await read_post(request, visitor)
    session = await process_of(request).tokens.find(hash_token(visitor.token))
    await close_session(request)
    provider = session.provider if isinstance(session, Session) else ""
    response = RedirectResponse(f"/sign-in/{provider}/end" if provider else "/sign-in", 303)
    clear_session(response, process_of(request).settings)
    return response


async def close_session(request: Request) -> None:
    """End the session of this browser, if it has one."""
    process = process_of(request)
    token = session_token(request, process.settings)
    if token is not None:
        await process.credentials.sign_out(token)


async def receive_form(request: Request) -> tuple[Post, Visitor]:
    """Return a form and its sender; without a sign-in show the sign-in page, which keeps the form's input.

    The person is identified before the form is read. A form too long to be kept is refused with the way to keep it.
    """
    try:
        visitor = await find_visitor(request)
        return await read_form(request), visitor
    except NotAuthenticated:
        declared = request.headers.get("content-length", "")
        too_long = TooLarge(_(_TOO_LONG), limit_bytes=_KEPT_BYTES)
        if declared.isdecimal() and int(declared[:20]) > _KEPT_BYTES:
            raise too_long from None
        try:
            post = await read_form(request)
        except TooLarge:
            raise too_long from None
        if len(await request.body()) > _KEPT_BYTES:
            raise too_long from None
        kept, sentence = keep_input(post), _("You were signed out. Sign in to continue with your input.")
        if kept:
            path = request.url.path
            show_again(request, lambda problem: show_sign_in(request, path, "", sentence, problem, kept))
        raise


def keep_input(post: Post) -> Post:
    """Return the input of a form that was sent without a session; empty for a form without input."""
    if not {"answer", "reason", "part"} & post.keys():
        return {}
    return {name: text for name, text in post.items() if name not in _OWN_FIELDS}


def show_sign_in(
    request: Request,
    place: str,
    name: str = "",
    sentence: str = "",
    problem: Problem | None = None,
    kept: Post | None = None,
    begun: str = "",
) -> Response:
    """Return the sign-in page, which passes the kept input on; with `begun` it asks for the code after a password."""
    process = process_of(request)
    plan, added = process.providers.load(), [row.sign_in for row in additions_of(request) if row.sign_in is not None]
    return render(
        request,
        "pages/sign_in.html",
        title=_("Sign in"),
        code=problem.status if problem is not None else 200,
        next=place,
        name=name,
        sentence=sentence,
        kept=kept or {},
        begun=begun,
        providers=plan.providers,
        passwords=plan.local_accounts,
        **{name: value for add in added for name, value in add(process.wiring).items()},
    )
