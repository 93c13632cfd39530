"""The people page for admins: add people, reset passwords, deactivate and activate. Also the log of what people did."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import new_secret
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, SaysoError
from service.auth.reviewers import require_log_reader, require_role
from service.channels.notices import reset_password
from service.operations.people.reviewers import (
    add_reviewer,
    deactivate_reviewer,
    find_shortages,
    list_duties,
)
from service.store.directory.activity import Activity
from service.store.people import Reviewer
from service.store.suspensions.reading import UnreadableRecord
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_admin, describe_refusal, read_form
from service.web.pages import show
from service.web.people.secrets import Secret, show_secret
from service.web.sessions import SignedIn, Visitor, wiring_of

_PAGE = "pages/people.html"
_PASSWORD_CHARS = 20
_ENTRIES = 50
_DONE = {
    "deactivate": mark("Deactivated. Their sessions end within a second; their decisions remain."),
    "activate": mark("Activated, with the password they had."),
    "manager": mark("The manager is set. Runs that have begun keep the earlier one."),
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
    require_role(visitor.principal.roles, "admin")
    return await show(request, visitor, _PAGE, **await _gather(request, {}, done=_DONE.get(done, "")))


@router.post("/people")
async def add(request: Request, visitor: SignedIn) -> Response:
    """Add the person of the form, and show their first password."""
    post = await read_form(request)
    name, password = post.get("name", "").strip(), new_secret()[:_PASSWORD_CHARS]
    try:
        check_admin(post, visitor)
        roles = ("reviewer", *(role for role in ("admin", "auditor") if role in post))
        await add_reviewer(wiring_of(request), name, password, roles, visitor.name)
    except SaysoError as error:
        await _show_again(request, visitor, post, error)
        raise
    return await _show_password(request, visitor, _("%(who)s is added", who=name), name, password)


@router.post("/people/{name}")
async def change(request: Request, visitor: SignedIn, name: str) -> Response:
    """Reset a password, or activate or deactivate a person; deactivating asks first."""
    post = await read_form(request)
    wiring, act = wiring_of(request), post.get("act", "")
    try:
        check_admin(post, visitor)
        if act == "password":
            password = new_secret()[:_PASSWORD_CHARS]
            await reset_password(wiring, request.app.state.channels, name, password, visitor.name)
            return await _show_password(request, visitor, _("%(who)s has a new password", who=name), name, password)
        if act == "ask":
            return await _ask(request, visitor, name)
        if act == "deactivate":
            await deactivate_reviewer(wiring, name, visitor.name)
        elif act == "activate":
            await wiring.reviewers.activate(name)
        elif act == "manager":
            await wiring.reviewers.set_manager(name, post.get("manager") or None)
        else:
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
    except SaysoError as error:
        await _show_again(request, visitor, {}, error)
        raise
    return RedirectResponse(f"/people?done={act}", 303)


async def _ask(request: Request, visitor: Visitor, name: str) -> Response:
    """Show which open items too few people could approve without this person."""
    shortages = await find_shortages(wiring_of(request), name)
    return await show(
        request,
        visitor,
        "pages/deactivate.html",
        title=_("Deactivate %(who)s", who=name),
        name=name,
        shortages=shortages,
    )


async def _show_password(request: Request, visitor: Visitor, title: str, name: str, password: str) -> Response:
    url = wiring_of(request).settings.public_url
    hint = _(
        "Copy it now: it is shown only once. %(who)s signs in at %(url)s and changes it under Me.", who=name, url=url
    )
    return await show_secret(request, visitor, Secret(title, mark("Password"), password, hint, "", "/people"))


async def _show_again(request: Request, visitor: Visitor, post: Post, error: SaysoError) -> None:
    if visitor.is_admin:
        context = await _gather(request, post, sentence=describe_refusal(error))
        show_page_again(request, _PAGE, visitor=visitor, **context)


async def _gather(request: Request, post: Post, *, sentence: str = "", done: str = "") -> dict[str, Any]:
    return {
        "title": _("People"),
        "rows": await _list_rows(request),
        "damaged": list_damaged(request, "person "),
        "typed": {name: post.get(name, "") for name in ("name", "admin", "auditor")},
        "sentence": sentence,
        "done": done,
    }


def list_damaged(request: Request, kind: str) -> list[UnreadableRecord]:
    """Return the known records of this kind that cannot be read, for a row each."""
    records = wiring_of(request).inspections.readings.list_unreadable()
    return [record for record in records if record.suspension_id.startswith(kind)]


async def _list_rows(request: Request) -> Sequence[PersonRow]:
    wiring = wiring_of(request)
    seen = await wiring.reviewers.list_last_seen()
    groups = await wiring.groups.list_all()
    rows = []
    for person in await wiring.reviewers.list_all():
        held = tuple(group.name for group in groups if person.name in group.members)
        rows.append(PersonRow(person, held, seen.get(person.name), list_duties(wiring, person.name, held)))
    return sorted(rows, key=lambda row: not row.person.active)


@router.get("/activity")
async def read_log(request: Request, visitor: SignedIn, skip: Annotated[int, Query(ge=0, le=200_000)] = 0) -> Response:
    """Show what people did and what was refused, the newest first."""
    require_log_reader(visitor.principal.roles)
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
