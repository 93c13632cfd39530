"""The keys page for admins: create, rotate and revoke the keys of agents, reviewers and provisioners."""

from typing import Any, NamedTuple, get_args

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import now_ms
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, SaysoError
from service.auth.reviewers import require_role
from service.operations.people import keys as managing
from service.store.people import ApiKey, KeyKind
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_admin, check_session, describe_refusal, read_form
from service.web.pages import show
from service.web.people.accounts import show_again
from service.web.people.directory import list_damaged
from service.web.people.secrets import Secret, show_secret
from service.web.sessions import SignedIn, Visitor, wiring_of

_PAGE = "pages/keys.html"
KINDS = {
    "agent": mark("It starts runs, sends calls for approval and reads its own runs. It cannot decide."),
    "reviewer": mark("It decides in the name of a person, as a reviewer. It cannot manage people, keys or freezes."),
    "provisioner": mark(
        "It creates and deletes instances of the Agent Approval Protocol. It cannot read runs or decide."
    ),
}
_TRIALS = {
    "agent": "/api/v1/agents",
    "reviewer": "/api/v1/suspensions",
    "provisioner": "/api/aap/v1/instances -H 'Idempotency-Key: trial-1' --json '{\"instance_name\": \"trial\"}'",
}
"""A first request for each kind."""

OVERLAPS = (
    (3600, mark("1 hour")),
    (86_400, mark("1 day")),
    (604_800, mark("7 days")),
    (0, mark("none: it ends now")),
)

router = APIRouter(route_class=RecordedRoute)


class KeyRow(NamedTuple):
    """A key as the page shows it."""

    key: ApiKey
    used_at_ms: int | None
    holds: bool
    listed: bool


@router.get("/keys")
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show all keys, without their secrets."""
    require_role(visitor.principal.roles, "admin")
    said = mark("Revoked. It fails everywhere within a second.") if done == "revoke" else ""
    return await show(request, visitor, _PAGE, **await _gather(request, {}, done=said))


@router.post("/keys")
async def create(request: Request, visitor: SignedIn) -> Response:
    """Create the key of the form, and show it once."""
    post = await read_form(request)
    try:
        check_admin(post, visitor)
        name, kind = post.get("name", "").strip(), _read_kind(post)
        owner = post.get("owner", "").strip() or None
        made, secret = await managing.create_key(wiring_of(request), visitor.principal, name, kind, owner=owner)
    except SaysoError as error:
        await _show_again(request, visitor, post, error)
        raise
    return await _show_key(request, visitor, made, secret, _("Copy it now: it is shown only once."))


@router.post("/keys/{key_id}")
async def change(request: Request, visitor: SignedIn, key_id: str) -> Response:
    """Rotate or revoke a key; revoking asks first."""
    post = await read_form(request)
    wiring, act = wiring_of(request), post.get("act", "")
    try:
        check_admin(post, visitor)
        if act == "rotate":
            made, secret = await managing.rotate_key(wiring, visitor.principal, key_id, _read_overlap(post))
            hint = _("Copy it now: it is shown only once. The old key stays valid until its overlap ends.")
            return await _show_key(request, visitor, made, secret, hint)
        if act == "ask":
            key = await managing.find_key(wiring, visitor.principal, key_id)
            return await show(request, visitor, "pages/revoke.html", title=_("Revoke a key"), key=key)
        if act != "revoke":
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
        await managing.revoke_key(wiring, visitor.principal, key_id)
    except SaysoError as error:
        await _show_again(request, visitor, {}, error)
        raise
    return RedirectResponse("/keys?done=revoke", 303)


@router.post("/me/keys")
async def create_own(request: Request, visitor: SignedIn) -> Response:
    """Create a key that decides in the visitor's name, and show it once."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        made, secret = await managing.create_key(wiring_of(request), visitor.principal, visitor.name, "reviewer")
    except SaysoError as error:
        await show_again(request, visitor, error)
        raise
    return await _show_key(request, visitor, made, secret, _("Copy it now: it is shown only once."), "/me")


@router.post("/me/keys/{key_id}/revoke")
async def revoke_own(request: Request, visitor: SignedIn, key_id: str) -> Response:
    """Revoke a key of the visitor's."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        await managing.revoke_key(wiring_of(request), visitor.principal, key_id)
    except SaysoError as error:
        await show_again(request, visitor, error)
        raise
    return RedirectResponse("/me?done=key", 303)


def _read_kind(post: Post) -> KeyKind:
    kind: KeyKind | None = next((kind for kind in get_args(KeyKind) if kind == post.get("kind")), None)
    if kind is None:
        raise InvalidInput(_("Choose the kind of the key."))
    return kind


def _read_overlap(post: Post) -> int:
    seconds = next((seconds for seconds, _ in OVERLAPS if str(seconds) == post.get("overlap")), None)
    if seconds is None:
        raise InvalidInput(_("Choose how long the old key stays valid."))
    return seconds


async def _show_key(
    request: Request, visitor: Visitor, made: ApiKey, secret: str, hint: str, back: str = "/keys"
) -> Response:
    url = wiring_of(request).settings.public_url
    command = f'curl -H "Authorization: Bearer {secret}" {url}{_TRIALS[made.kind]}'
    title = _("New key of the %(kind)s %(name)s", kind=made.kind, name=made.name)
    return await show_secret(request, visitor, Secret(title, mark("Key"), secret, hint, command, back))


async def _show_again(request: Request, visitor: Visitor, post: Post, error: SaysoError) -> None:
    if visitor.is_admin:
        context = await _gather(request, post, sentence=describe_refusal(error))
        show_page_again(request, _PAGE, visitor=visitor, **context)


async def _gather(request: Request, post: Post, *, sentence: str = "", done: str = "") -> dict[str, Any]:
    wiring, at_ms = wiring_of(request), now_ms()
    uses = await wiring.api_keys.list_uses()
    keys = await wiring.api_keys.scan()
    rows = [KeyRow(key, uses.get(key.id), key.holds(at_ms), listed) for _hash, key, listed in keys]
    return {
        "title": _("Keys"),
        "rows": [row for row in rows if row.holds],
        "ended": [row for row in reversed(rows) if not row.holds],
        "damaged": list_damaged(request, "key "),
        "kinds": KINDS,
        "overlaps": OVERLAPS,
        "typed": {name: post.get(name, "") for name in ("kind", "name", "owner")},
        "sentence": sentence,
        "done": done,
    }
