"""The page of what is frozen: everybody sees it, an admin freezes and lifts."""

import re
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import InvalidInput, SaysoError, UnknownName
from sayso.problems import Problem
from sayso.records.freezes import SCOPE_PATTERN
from service.auth.reviewers import require_role
from service.operations.known_names import freeze_known
from service.web.errors import show_again
from service.web.form_posts import Post, check_session, describe_refusal, read_form, read_post
from service.web.pages import render, show
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.web.sign_ins import find_sender

_KINDS = ("all", "agent", "tool")
_MAX_UNFROZEN = 20

router = APIRouter()


@router.get("/freezes")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show what is frozen, and what was of late."""
    await wiring_of(request).freezes.known(fresh=True)
    return await show(request, visitor, "pages/freezes.html", **await _gather(request, visitor, {}, ""))


@router.post("/freezes")
async def freeze(request: Request) -> Response:
    """Freeze what the form names."""
    post = await read_form(request)
    visitor = await find_sender(request, post)
    wiring = wiring_of(request)
    try:
        check_session(post, visitor)
        require_role(visitor.principal.roles, "admin")
        scope = _read_scope(post)
        reason = post.get("reason", "").replace("\r\n", "\n").strip()[:2000]
        by, confirmed = visitor.principal.actor("web"), post.get("confirm") == scope
        await freeze_known(wiring, scope, reason, by, confirmed=confirmed)
    except SaysoError as error:
        context = await _gather(request, visitor, post, describe_refusal(error))
        context["unknown"] = error.facts.get("scope") if isinstance(error, UnknownName) else None

        def again(problem: Problem) -> Response:
            return render(request, "pages/freezes.html", code=problem.status, visitor=visitor, **context)

        show_again(request, again)
        raise
    return RedirectResponse("/freezes", 303)


@router.post("/freezes/{freeze_id}/lift")
async def unfreeze(request: Request, visitor: SignedIn, freeze_id: str) -> Response:
    """Lift a freeze; of time, with what the form says about the deadlines."""
    post = await read_post(request, visitor)
    require_role(visitor.principal.roles, "admin")
    deadlines: Literal["move", "pass"] = "pass" if post.get("deadlines") == "pass" else "move"
    await wiring_of(request).freezes.unfreeze(freeze_id, visitor.principal.actor("web"), deadlines)
    return RedirectResponse("/freezes", 303)


async def _gather(request: Request, visitor: Visitor, typed: Post, sentence: str) -> dict[str, Any]:
    known = await wiring_of(request).freezes.known()
    return {
        "title": "Freezes",
        "ended": [one for one in reversed(known) if not one.in_force][:_MAX_UNFROZEN],
        "typed": {name: typed.get(name, "") for name in ("kind", "named", "reason")},
        "sentence": sentence,
        "unknown": None,
    }


def _read_scope(post: Post) -> str:
    kind, name = post.get("kind", ""), post.get("named", "").strip()
    if kind not in _KINDS:
        raise InvalidInput("Choose what to freeze: everything, an agent or a tool.")
    if kind != "all" and not name:
        raise InvalidInput(f"Write the name of the {kind} to freeze.")
    scope = "all" if kind == "all" else f"{kind}:{name}"
    if not re.fullmatch(SCOPE_PATTERN, scope):
        raise InvalidInput("A name has 1 to 200 characters, all of them visible.")
    return scope
