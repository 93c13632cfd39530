"""The page of candidates in shadow: begin, compare, put in force, end. Read by everybody, changed by admins."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.text.language import _
from sayso.errors import InvalidInput, SaysoError
from service.auth.reviewers import require_role
from service.operations.rulebook.shadows import (
    begin_file_shadow,
    begin_shadow,
    end_shadow,
    promote_shadow,
    read_shadows,
    report_shadow,
)
from service.operations.rulebook.versions import read_version
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_session, describe_refusal, read_form
from service.web.pages import show
from service.web.rulebook.replays import replays_of
from service.web.sessions import SignedIn, Visitor, wiring_of

_FILE = "candidate"
_PAGE = "pages/rule_shadow.html"
_PATH = "/rules/-/shadow"

router = APIRouter(route_class=RecordedRoute)


@router.get(_PATH)
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the candidate in shadow, and those before it."""
    return await show(request, visitor, _PAGE, **await _gather(request, {}))


@router.post(_PATH)
async def change(request: Request, visitor: SignedIn) -> Response:
    """Begin or end a shadow, put the candidate in force, or compare it with what was done."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        require_role(visitor.principal.roles, "admin")
        place = await _act(request, visitor, post)
    except SaysoError as error:
        context = {**await _gather(request, post), "sentence": describe_refusal(error)}
        show_page_again(request, _PAGE, visitor=visitor, **context)
        raise
    return RedirectResponse(place, 303)


async def _act(request: Request, visitor: Visitor, post: Post) -> str:
    """Do what the form asks for, and return where to go next."""
    wiring, act, version = wiring_of(request), post.get("act"), post.get("version", "")
    if act == "compare":
        replay = await report_shadow(wiring, replays_of(request), visitor.name, version)
        return f"/rules/-/replays/{replay.id}"
    if act == "end":
        await end_shadow(wiring, version, visitor.name)
    elif act == "promote":
        await promote_shadow(wiring, version, visitor.name, post.get("replaces", ""))
        return f"/rules/-/versions/{version}"
    elif version:
        await begin_shadow(wiring, version, visitor.name)
    else:
        text = post.get("text", "").replace("\r\n", "\n")
        if not text.strip():
            raise InvalidInput("Paste the rules of the candidate.")
        lists = await asyncio.to_thread(wiring.rulebook.read_lists)
        await begin_file_shadow(wiring, text, _FILE, visitor.name, lists)
    return _PATH


async def _gather(request: Request, post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    state = await read_shadows(wiring)
    in_force = await wiring.rules.history.versions.read_in_force()
    current = await read_version(wiring, state.current.version) if state.current is not None else None
    return {
        "title": _("Shadow"),
        "sentence": "",
        "state": state,
        "current": current,
        "in_force": in_force,
        "needed": wiring.settings.policy_attestations,
        "draft": post.get("text", "").replace("\r\n", "\n"),
    }
