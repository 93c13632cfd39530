"""The pages of people and keys, for admins, and the log of what people did. A secret is shown once, in no URL."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import new_secret, now_ms
from sayso.core.records.decisions import KeyKind, KeyScope
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from service.channels.previews import reset_password
from service.core.auth.roles import REVIEWER, ROLES
from service.core.operations import people as managing
from service.core.operations.people import add_reviewer, deactivate_reviewer, find_shortages, list_duties
from service.core.store.activity import Activity
from service.core.store.people import ApiKey, KeyTerms, Reviewer
from service.core.store.suspensions.reading import UnreadableRecord
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.people.account_pages import receive_own


class Secret(NamedTuple):
    """What the page shows: whose secret, the secret, what to do with it, a command to try it, and the way back."""

    title: str
    label: str
    text: str
    hint: str
    command: str
    back: str


async def show_secret(request: Request, visitor: Visitor, secret: Secret) -> Response:
    """Return the page with the secret, which no cache keeps."""
    response = await show(request, visitor, "pages/secret.html", title=secret.title, secret=secret)
    response.headers["Cache-Control"] = "no-store"
    return response


_PAGE = "pages/people.html"
_PASSWORD_CHARS = 20
_ENTRIES = 50
_DONE = {
    "deactivate": mark("Deactivated. Their sessions end within a second; their decisions remain."),
    "activate": mark("Activated, with the password they had."),
    "manager": mark("The manager is set. Runs that have begun keep the earlier one."),
    "roles": mark("The roles are set. They hold within a second."),
}
ROLE_HINTS = {
    "reviewer": mark("decides items"),
    "rule_author": mark("changes the rules"),
    "auditor": mark("reads and exports everything, and the activity log"),
    "operator": mark("freezes, cancels runs, and manages channels and webhooks"),
    "admin": mark("does everything, and manages people and keys"),
}

router = APIRouter(route_class=RecordedRoute)


class PersonRow(NamedTuple):
    """A person as the page shows them. `rules` are those that name the person or one of their groups."""

    person: Reviewer
    groups: tuple[str, ...]
    seen_at_ms: int | None
    rules: tuple[str, ...]


@router.get("/people")
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show everybody who can sign in."""
    return await show(request, visitor, _PAGE, **await _gather(request, {}), done=_DONE.get(done, ""))


@router.post("/people")
async def add(request: Request, visitor: SignedIn) -> Response:
    """Add the person of the form, and show their first password."""
    async with receive(request, visitor, _PAGE, partial(_gather, request)) as post:
        name, password = post.get("name", "").strip(), new_secret()[:_PASSWORD_CHARS]
        roles = await _read_roles(request, post) or (REVIEWER,)
        await add_reviewer(wiring_of(request), name, password, roles, visitor.principal)
        return await _show_password(request, visitor, _("%(who)s is added", who=name), name, password)


@router.post("/people/{name}")
async def change(request: Request, visitor: SignedIn, name: str) -> Response:
    """Reset a password, give roles or a manager, or activate or deactivate a person; deactivating asks first."""
    wiring = wiring_of(request)
    async with receive(request, visitor, _PAGE, lambda _post: _gather(request, {})) as post:
        act = post.get("act", "")
        await managing.check_rank(wiring, visitor.principal, name)
        if act == "password":
            password = new_secret()[:_PASSWORD_CHARS]
            await reset_password(wiring, request.app.state.channels, name, password, visitor.name)
            return await _show_password(request, visitor, _("%(who)s has a new password", who=name), name, password)
        if act == "ask":
            title, shortages = _("Deactivate %(who)s", who=name), await find_shortages(wiring, name)
            return await show(request, visitor, "pages/deactivate.html", title=title, name=name, shortages=shortages)
        if act == "deactivate":
            await deactivate_reviewer(wiring, name, visitor.name)
        elif act == "activate":
            await wiring.reviewers.activate(name)
        elif act == "roles":
            await managing.set_roles(wiring, visitor.principal, name, await _read_roles(request, post))
        elif act == "manager":
            await wiring.reviewers.set_manager(name, post.get("manager") or None)
        else:
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
    return RedirectResponse(f"/people?done={act}", 303)


async def _read_roles(request: Request, post: Post) -> tuple[str, ...]:
    return tuple(role for role in await _list_roles(request) if f"role:{role}" in post)


async def _list_roles(request: Request) -> tuple[str, ...]:
    return (*ROLES, *(role.name for role in await wiring_of(request).roles.list_all()))


async def _show_password(request: Request, visitor: Visitor, title: str, name: str, password: str) -> Response:
    url = wiring_of(request).settings.public_url
    hint = _(
        "Copy it now: it is shown only once. %(who)s signs in at %(url)s and changes it under Me.", who=name, url=url
    )
    return await show_secret(request, visitor, Secret(title, mark("Password"), password, hint, "", "/people"))


async def _gather(request: Request, post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    seen = await wiring.reviewers.list_last_seen()
    groups = await wiring.groups.list_all()
    rows = []
    for person in await wiring.reviewers.list_all():
        held = tuple(group.name for group in groups if person.name in group.members)
        rows.append(PersonRow(person, held, seen.get(person.name), list_duties(wiring, person.name, held)))
    return {
        "title": _("People"),
        "rows": sorted(rows, key=lambda row: not row.person.active),
        "damaged": list_damaged(request, "person "),
        "roles": {name: ROLE_HINTS.get(name, "") for name in await _list_roles(request)},
        "typed": post,
        "chosen": [name.removeprefix("role:") for name in post if name.startswith("role:")] or [REVIEWER],
    }


def list_damaged(request: Request, kind: str) -> list[UnreadableRecord]:
    """Return the known records of this kind that cannot be read, for a row each."""
    records = wiring_of(request).inspections.readings.list_unreadable()
    return [record for record in records if record.suspension_id.startswith(kind)]


@router.get("/activity")
async def read_log(request: Request, visitor: SignedIn, skip: Annotated[int, Query(ge=0, le=200_000)] = 0) -> Response:
    """Show what people did and what was refused, the newest first."""
    page = await wiring_of(request).activity.read_page(skip, _ENTRIES + 1)
    return await show(
        request,
        visitor,
        "pages/activity.html",
        title=_("Activity"),
        rows=[(entry, write_facts(entry)) for entry in page.entries[:_ENTRIES]],
        broken_at=page.broken_at,
        skip=skip,
        following=skip + _ENTRIES if len(page.entries) > _ENTRIES else None,
    )


def write_facts(entry: Activity) -> str:
    """Return the further facts of an entry as one text."""
    return ", ".join(f"{name}: {value}" for name, value in entry.data.items())


_KEYS_PAGE = "pages/keys.html"
KINDS = {
    "agent": mark("It starts runs, sends calls for approval and reads its own runs. It cannot decide."),
    "reviewer": mark("It decides in the name of a person, as a reviewer. It cannot manage people, keys or freezes."),
    "provisioner": mark(
        "It creates and deletes instances of the Agent Approval Protocol. It cannot read runs or decide."
    ),
    "directory": mark("It adds and deactivates people and keeps groups over SCIM. It cannot read runs or decide."),
}
_TRIALS = {
    "agent": "/api/v1/agents",
    "reviewer": "/api/v1/suspensions",
    "provisioner": "/api/aap/v1/instances -H 'Idempotency-Key: trial-1' --json '{\"instance_name\": \"trial\"}'",
    "directory": "/scim/v2/Users",
}
"""A first request for each kind."""

EXPIRIES = ((0, mark("never")), (30, mark("in 30 days")), (90, mark("in 90 days")), (365, mark("in a year")))
SCOPES: Mapping[KeyScope, str] = {
    "ask": mark("send calls for approval"),
    "run": mark("start runs"),
    "read": mark("read its runs"),
    "webhooks": mark("manage webhooks"),
    "monitor": mark("read checks and metrics"),
}
_FIELDS = ("kind", "name", "owner", *(f"scope_{scope}" for scope in SCOPES), "agents", "networks", "expires")
OVERLAPS = ((3600, mark("1 hour")), (86_400, mark("1 day")), (604_800, mark("7 days")), (0, mark("none: it ends now")))


class KeyRow(NamedTuple):
    """A key as the page shows it."""

    key: ApiKey
    used_at_ms: int | None
    holds: bool
    listed: bool

    @property
    def limits(self) -> tuple[str, ...]:
        """What narrows the key, a line for each kind."""
        lines = []
        if self.key.scopes:
            lines.append(_("may only: %(acts)s", acts=", ".join(_(SCOPES[scope]) for scope in self.key.scopes)))
        if self.key.agents:
            lines.append(_("only as %(names)s", names=", ".join(self.key.agents)))
        if self.key.networks:
            lines.append(_("only from %(places)s", places=", ".join(self.key.networks)))
        return tuple(lines)


@router.get("/keys")
async def read_keys(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show all keys, without their secrets."""
    said = mark("Revoked. It fails everywhere within a second.") if done == "revoke" else ""
    return await show(request, visitor, _KEYS_PAGE, **await _gather_keys(request, {}), done=said)


@router.post("/keys")
async def create(request: Request, visitor: SignedIn) -> Response:
    """Create the key of the form, and show it once."""
    async with receive(request, visitor, _KEYS_PAGE, partial(_gather_keys, request)) as post:
        name = post.get("name", "").strip()
        kind: KeyKind | None = next((kind for kind in get_args(KeyKind) if kind == post.get("kind")), None)
        if kind is None:
            raise InvalidInput(_("Choose the kind of the key."))
        made, secret = await managing.create_key(wiring_of(request), visitor.principal, name, kind, _read_terms(post))
        return await _show_key(request, visitor, made, secret, _("Copy it now: it is shown only once."))


def _read_terms(post: Post) -> KeyTerms:
    """Return the terms of the form of a new key. Lists are separated by spaces or commas."""
    agents, networks = (tuple(re.split(r"[\s,]+", post.get(name, "").strip())) for name in ("agents", "networks"))
    days = next((days for days, _ in EXPIRIES if str(days) == post.get("expires")), 0)
    return KeyTerms(
        owner=post.get("owner", "").strip() or None,
        scopes=tuple(scope for scope in SCOPES if post.get(f"scope_{scope}")),
        agents=tuple(filter(None, agents)),
        networks=tuple(filter(None, networks)),
        expires_at_ms=now_ms() + days * 86_400_000 if days else None,
    )


@router.post("/keys/{key_id}")
async def change_keys(request: Request, visitor: SignedIn, key_id: str) -> Response:
    """Rotate or revoke a key; revoking asks first."""
    wiring = wiring_of(request)
    async with receive(request, visitor, _KEYS_PAGE, lambda _post: _gather_keys(request, {})) as post:
        act = post.get("act", "")
        if act == "rotate":
            seconds = next((seconds for seconds, _ in OVERLAPS if str(seconds) == post.get("overlap")), None)
            if seconds is None:
                raise InvalidInput(_("Choose how long the old key stays valid."))
            made, secret = await managing.rotate_key(wiring, visitor.principal, key_id, seconds)
            hint = _("Copy it now: it is shown only once. The old key stays valid until its overlap ends.")
            return await _show_key(request, visitor, made, secret, hint)
        if act == "ask":
            key = await managing.find_key(wiring, visitor.principal, key_id)
            return await show(request, visitor, "pages/revoke.html", title=_("Revoke a key"), key=key)
        if act != "revoke":
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
        await managing.revoke_key(wiring, visitor.principal, key_id)
    return RedirectResponse("/keys?done=revoke", 303)


@router.post("/me/keys")
async def create_own(request: Request, visitor: SignedIn) -> Response:
    """Create a key that decides in the visitor's name, and show it once."""
    async with receive_own(request, visitor):
        made, secret = await managing.create_key(wiring_of(request), visitor.principal, visitor.name, "reviewer")
    return await _show_key(request, visitor, made, secret, _("Copy it now: it is shown only once."), "/me")


@router.post("/me/keys/{key_id}/revoke")
async def revoke_own(request: Request, visitor: SignedIn, key_id: str) -> Response:
    """Revoke a key of the visitor's."""
    async with receive_own(request, visitor):
        await managing.revoke_key(wiring_of(request), visitor.principal, key_id)
    return RedirectResponse("/me?done=key", 303)


async def _show_key(
    request: Request, visitor: Visitor, made: ApiKey, secret: str, hint: str, back: str = "/keys"
) -> Response:
    url = wiring_of(request).settings.public_url
    command = f'curl -H "Authorization: Bearer {secret}" {url}{_TRIALS[made.kind]}'
    title = _("New key of the %(kind)s %(name)s", kind=made.kind, name=made.name)
    return await show_secret(request, visitor, Secret(title, mark("Key"), secret, hint, command, back))


async def _gather_keys(request: Request, post: Post) -> dict[str, Any]:
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
        "scopes": SCOPES,
        "expiries": EXPIRIES,
        "typed": {name: post.get(name, "") for name in _FIELDS},
    }
