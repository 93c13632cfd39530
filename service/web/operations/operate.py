"""The operate page: the state of each part, and freezes. Everybody reads it, admins freeze and unfreeze."""

import re
from typing import Any, Literal, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.records.freezes import ALL, SCOPE_PATTERN
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, SaysoError
from service.auth.reviewers import require_role
from service.operations.known_names import Held, check_known, count_held, freeze_known, list_known
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_admin, describe_refusal, read_post, read_reason
from service.web.operations.checks import Checked, find_checked
from service.web.pages import show
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.web.sign_ins import receive_form

_PAGE = "pages/operate.html"
_MAX_ENDED = 20
_PARTS = {
    "durability": mark("Store"),
    "time": mark("Time"),
    "clock": mark("Clock"),
    "workers": mark("Workers"),
    "queue": mark("Queue"),
    "freezes": mark("Freezes"),
    "limits": mark("Limits"),
    "records": mark("Records"),
    "inbox": mark("Inbox"),
    "trails": mark("Audit trails"),
    "keys": mark("Keys"),
    "activity": mark("Activity"),
    "rules held": mark("Rules in use"),
    "rules held back": mark("Rules held back"),
    "rules": mark("Rules"),
    "channels": mark("Deliveries"),
    "webhooks": mark("Webhooks and dead letters"),
    "store": mark("Store"),
}
"""The parts of the diagnostics as the page names them."""

router = APIRouter(route_class=RecordedRoute)


class Line(NamedTuple):
    """The state of one part."""

    part: str
    ok: bool
    message: str
    todo: str


@router.get("/operate")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the state of each part, what is frozen, and recent freezes."""
    await wiring_of(request).freezes.known(fresh=True)
    return await show(request, visitor, _PAGE, **await _gather(request, {}))


@router.get("/freezes")
async def redirect(_visitor: SignedIn) -> Response:
    """Lead to the page, whose path was `/freezes`."""
    return RedirectResponse("/operate", 308)


@router.post("/operate")
async def freeze(request: Request) -> Response:
    """Show what the freeze of the form would stop; with `confirm`, freeze it."""
    post, visitor = await receive_form(request)
    wiring = wiring_of(request)
    try:
        check_admin(post, visitor)
        scope, unseen = _read_scope(post), "unseen" in post
        reason = read_reason(post)
        if not reason:
            raise InvalidInput(_("Enter the reason. Everybody sees it."))
        if post.get("confirm") == scope:
            await freeze_known(wiring, scope, reason, visitor.principal.actor("web"), confirmed=unseen)
            return RedirectResponse("/operate", 303)
        if "*" in scope:
            raise InvalidInput(_("A freeze names one tool or agent, not a pattern. Freeze each by its name."))
        if not unseen:
            await check_known(wiring, scope)
    except SaysoError as error:
        show_page_again(request, _PAGE, visitor=visitor, **await _gather(request, post, describe_refusal(error)))
        raise
    return await _ask(request, visitor, post, scope)


@router.post("/operate/{freeze_id:path}/unfreeze")
async def unfreeze(request: Request, visitor: SignedIn, freeze_id: str) -> Response:
    """Unfreeze what an id or a scope names; after a clock jump the form says what happens to the deadlines."""
    post = await read_post(request, visitor)
    require_role(visitor.principal.roles, "admin")
    deadlines: Literal["move", "pass"] = "pass" if post.get("deadlines") == "pass" else "move"
    await wiring_of(request).freezes.unfreeze(freeze_id, visitor.principal.actor("web"), deadlines)
    return RedirectResponse("/operate", 303)


async def _ask(request: Request, visitor: Visitor, post: Post, scope: str) -> Response:
    """Show the freeze once more, with what it stops."""
    held = await count_held(wiring_of(request))
    fields = {name: post[name] for name in ("scope", "kind", "named", "unseen") if post.get(name)}
    return await show(
        request,
        visitor,
        "pages/freeze.html",
        title=_("Freeze"),
        freezing=scope,
        stops=describe_stops(held, scope),
        cut=held.cut,
        fields={**fields, "reason": read_reason(post)},
    )


def describe_stops(held: Held, scope: str) -> str:
    """Return what a freeze of the scope would stop now."""
    waiting, starting = held.waiting[scope], held.starting[scope]
    if not waiting and not starting:
        return _("It stops nothing at the moment. New calls will not start.")
    return _(
        "It stops %(waiting)s waiting and %(starting)s about to start. New calls will not start.",
        waiting=waiting,
        starting=starting,
    )


async def _gather(request: Request, post: Post, sentence: str = "") -> dict[str, Any]:
    wiring = wiring_of(request)
    known, checked = await wiring.freezes.known(), await find_checked(request)
    return {
        "title": _("Operate"),
        "lines": _list_lines(checked),
        "checked_at_ms": checked.at_ms,
        "ended": [freeze for freeze in reversed(known) if not freeze.in_force][:_MAX_ENDED],
        "tools": await list_known(wiring, "tool"),
        "agents": await list_known(wiring, "agent"),
        "held": await count_held(wiring),
        "typed": {name: post.get(name, "") for name in ("scope", "kind", "named", "unseen", "reason")},
        "sentence": sentence,
    }


def _list_lines(checked: Checked) -> list[Line]:
    return [
        Line(_PARTS.get(finding.part, finding.part), finding.ok, finding.message, finding.todo)
        for finding in checked.findings
    ]


def _read_scope(post: Post) -> str:
    """Return the chosen scope, or the typed name of a tool or agent."""
    kind, name = post.get("kind", ""), post.get("named", "").strip()
    scope = f"{kind}:{name}" if name else post.get("scope", "")
    if name and kind not in ("tool", "agent"):
        raise InvalidInput(_("Choose whether the name is that of a tool or of an agent."))
    if not scope:
        raise InvalidInput(_("Choose what to freeze."))
    if scope != ALL and not re.fullmatch(SCOPE_PATTERN, scope):
        raise InvalidInput(_("A name has 1 to 200 characters, all of them visible."))
    return scope
