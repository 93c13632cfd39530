"""The freezes page: reviewers see what is frozen, admins freeze and unfreeze."""

import re
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import InvalidInput, SaysoError, UnknownName
from sayso.records.freezes import SCOPE_PATTERN
from service.auth.reviewers import require_role
from service.operations.known_names import freeze_known
from service.web.errors import show_page_again
from service.web.form_posts import Post, check_session, describe_refusal, read_form, read_post, read_reason
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of
from service.web.sign_ins import find_sender

_PAGE = "pages/freezes.html"
_SCOPES = ("all", "agent", "tool")
_MAX_ENDED = 20

router = APIRouter()


@router.get("/freezes")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show what is frozen, and recent freezes."""
    await wiring_of(request).freezes.known(fresh=True)
    return await show(request, visitor, _PAGE, **await _gather(request, {}))


@router.post("/freezes")
async def freeze(request: Request) -> Response:
    """Freeze what the form names."""
    post = await read_form(request)
    visitor = await find_sender(request, post)
    try:
        check_session(post, visitor)
        require_role(visitor.principal.roles, "admin")
        scope = _read_scope(post)
        by, confirmed = visitor.principal.actor("web"), post.get("confirm") == scope
        await freeze_known(wiring_of(request), scope, read_reason(post), by, confirmed=confirmed)
    except SaysoError as error:
        context = await _gather(request, post, describe_refusal(error))
        context["unknown"] = error.facts.get("scope") if isinstance(error, UnknownName) else None
        show_page_again(request, _PAGE, visitor=visitor, **context)
        raise
    return RedirectResponse("/freezes", 303)


@router.post("/freezes/{freeze_id}/unfreeze")
async def unfreeze(request: Request, visitor: SignedIn, freeze_id: str) -> Response:
    """Unfreeze; after a clock jump the form says what happens to the deadlines."""
    post = await read_post(request, visitor)
    require_role(visitor.principal.roles, "admin")
    deadlines: Literal["move", "pass"] = "pass" if post.get("deadlines") == "pass" else "move"
    await wiring_of(request).freezes.unfreeze(freeze_id, visitor.principal.actor("web"), deadlines)
    return RedirectResponse("/freezes", 303)


async def _gather(request: Request, post: Post, sentence: str = "") -> dict[str, Any]:
    known = await wiring_of(request).freezes.known()
    return {
        "title": "Freezes",
        "ended": [freeze for freeze in reversed(known) if not freeze.in_force][:_MAX_ENDED],
        "typed": {name: post.get(name, "") for name in ("kind", "named", "reason")},
        "sentence": sentence,
        "unknown": None,
    }


def _read_scope(post: Post) -> str:
    kind, name = post.get("kind", ""), post.get("named", "").strip()
    if kind not in _SCOPES:
        raise InvalidInput("Choose a scope: everything, an agent or a tool.")
    if kind != "all" and not name:
        raise InvalidInput(f"Enter the name of the {kind} to freeze.")
    scope = "all" if kind == "all" else f"{kind}:{name}"
    if not re.fullmatch(SCOPE_PATTERN, scope):
        raise InvalidInput("A name has 1 to 200 characters, all of them visible.")
    return scope
