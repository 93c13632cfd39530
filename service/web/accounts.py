"""The page of one's own sign-in: a new password, and the sessions that are open."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import InvalidInput, SaysoError
from sayso.problems import Problem
from service.auth.hosts import origin_of
from service.auth.reviewers import hash_token, id_of_session
from service.settings import LONGEST_PASSWORD, SHORTEST_PASSWORD
from service.store.people import Session
from service.web.errors import show_again
from service.web.form_posts import Post, check_session, describe_refusal, read_form
from service.web.pages import render, show
from service.web.sessions import SignedIn, Visitor, set_session, wiring_of

router = APIRouter()


@router.get("/account")
async def read(request: Request, visitor: SignedIn, done: str | None = None) -> Response:
    """Show who is signed in, and where."""
    context = await _gather(request, visitor, "", done if done in _DONE else None)
    return await show(request, visitor, "pages/account.html", **context)


@router.post("/account/password")
async def change_password(request: Request, visitor: SignedIn) -> Response:
    """Give the visitor the password they chose, and this browser a fresh session."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        current, chosen = post.get("current", ""), post.get("password", "")
        if chosen != post.get("again", ""):
            raise InvalidInput("The new password was typed in two ways. Type it again.")
        session = Session(tenant=visitor.tenant, name=visitor.name, roles=(), csrf="", created_at_ms=0)
        wiring = wiring_of(request)
        opened = await wiring.reviewers.change_password(session, current, chosen, origin_of(request))
    except SaysoError as error:
        await _show_refusal(request, visitor, error)
        raise
    wiring.credentials.forget(visitor.token)
    response = RedirectResponse("/account?done=password", 303)
    set_session(response, wiring.settings, opened.token)
    return response


@router.post("/account/sessions")
async def end_sessions(request: Request, visitor: SignedIn) -> Response:
    """End the session that the form names, or all but this one."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        await _end(request, visitor, post)
    except SaysoError as error:
        await _show_refusal(request, visitor, error)
        raise
    return RedirectResponse("/account?done=sessions", 303)


_DONE = {
    "password": "Your password is changed. All other sessions have ended.",
    "sessions": "Ended. It takes a second until that holds everywhere.",
}


async def _end(request: Request, visitor: Visitor, post: Post) -> None:
    reviewers = wiring_of(request).reviewers
    if post.get("which") == "others":
        await reviewers.end_sessions(visitor.name, but=visitor.token)
    else:
        await reviewers.end_session(visitor.name, post.get("which", ""))


async def _show_refusal(request: Request, visitor: Visitor, error: SaysoError) -> None:
    context = await _gather(request, visitor, describe_refusal(error), None)

    def again(problem: Problem) -> Response:
        return render(request, "pages/account.html", code=problem.status, visitor=visitor, **context)

    show_again(request, again)


async def _gather(request: Request, visitor: Visitor, sentence: str, done: str | None) -> dict[str, Any]:
    own = id_of_session(hash_token(visitor.token))
    found = await wiring_of(request).reviewers.list_sessions(visitor.name)
    return {
        "title": "Your account",
        "sentence": sentence,
        "done": _DONE[done] if done is not None else "",
        "own": own,
        "sessions": [(id_of_session(one.token_hash), one.session) for one in found],
        "shortest": SHORTEST_PASSWORD,
        "longest": LONGEST_PASSWORD,
    }
