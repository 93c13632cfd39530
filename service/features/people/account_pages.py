"""The page Me: password, sessions, display, channels, preferences and absences."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from sayso.core.calendar import WEEKDAYS, Hours, WorkingHours
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from sayso.wire.people import Preferences
from service.core.auth.credentials import require_own_password
from service.core.auth.hosts import origin_of
from service.core.auth.reviewers import hash_token, id_of_session
from service.core.operations.people import list_own_keys
from service.core.settings import LONGEST_PASSWORD, SHORTEST_PASSWORD
from service.core.store.people import Session
from service.edge.web.languages import COOKIE, list_languages, set_zone
from service.edge.web.pages import make_display, receive, set_display, set_language, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, read_post, set_session, wiring_of

_LACKING = {
    "quiet": mark("Give the quiet hours a start, an end and at least one weekday."),
    "working": mark("Give the working hours a start, an end and at least one weekday."),
}


def read_moment(text: str, zone: ZoneInfo, fault: str) -> int:
    """Return a local time of a form in ms; raises `InvalidInput` with the `fault`."""
    try:
        return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(fault) from error


def read_zone(post: Post) -> str:
    """Return the time zone of a form; by default UTC."""
    return post.get("time_zone", "").strip() or "UTC"


def read_hours(post: Post, name: str) -> Hours | None:
    """Return the hours of a form, or None without a start and an end; raises `InvalidInput`."""
    start, end = post.get(f"{name}-start", "").strip(), post.get(f"{name}-end", "").strip()
    days = tuple(day for day in WEEKDAYS if post.get(f"{name}-{day}"))
    if not start and not end:
        return None
    try:
        return Hours.model_validate({"start": start, "end": end, "weekdays": days})
    except ValidationError as error:
        raise InvalidInput(_(_LACKING[name])) from error


def read_working_hours(post: Post) -> WorkingHours | None:
    """Return the working hours of a form, or None without hours; raises `InvalidInput`."""
    hours, time_zone = read_hours(post, "working"), read_zone(post)
    if hours is None:
        return None
    country, subdivision = (post.get(name, "").strip().upper() for name in ("country", "subdivision"))
    try:
        return WorkingHours(time_zone=time_zone, hours=hours, country=country, subdivision=subdivision)
    except ValidationError as error:
        unknown = _("The time zone “%(name)s” is unknown. Enter one such as Europe/Berlin.", name=time_zone[:64])
        raise InvalidInput(unknown) from error


def write_hours(hours: Hours | None, name: str) -> dict[str, str]:
    """Return hours as the fields of a form; without hours, every weekday is chosen."""
    days = hours.weekdays if hours is not None else WEEKDAYS[:5] if name == "working" else WEEKDAYS
    chosen = {f"{name}-{day}": "on" for day in days}
    return {f"{name}-start": hours.start if hours else "", f"{name}-end": hours.end if hours else "", **chosen}


def write_working_hours(working: WorkingHours | None) -> Mapping[str, str]:
    """Return working hours as the fields of a form."""
    if working is None:
        return write_hours(None, "working")
    return {**write_hours(working.hours, "working"), "country": working.country, "subdivision": working.subdivision}


def write_preferences(preferences: Preferences) -> Mapping[str, str]:
    """Return preferences as the fields of a form."""
    return {
        "time_zone": preferences.time_zone,
        "digest": preferences.digest,
        "cap": str(preferences.cap_per_hour or ""),
        "language": preferences.language,
        **write_hours(preferences.quiet_hours, "quiet"),
        **write_working_hours(preferences.working_hours),
    }


PAGE = "pages/me.html"
_DONE = {
    "password": mark("The password is changed. All other sessions have ended."),
    "sessions": mark("Ended. This takes effect everywhere within a second."),
    "contacts": mark("The address is unlinked."),
    "preferences": mark("Your preferences are saved."),
    "absences": mark("Your absences are saved."),
    "key": mark("The key is revoked. It fails everywhere within a second."),
    "display": mark("Saved for this browser."),
}

router = APIRouter(route_class=RecordedRoute)


@router.get("/me")
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the account and its sessions."""
    return await show(request, visitor, PAGE, **await gather(request, visitor), done=_DONE.get(done, ""))


@router.post("/me/password")
async def change_password(request: Request, visitor: SignedIn) -> Response:
    """Change the password, and open a new session for this browser."""
    async with receive_own(request, visitor) as post:
        current, chosen = post.get("current", ""), post.get("password", "")
        if chosen != post.get("again", ""):
            raise InvalidInput(_("The two new passwords differ. Enter them again."))
        session = Session(tenant=visitor.tenant, name=visitor.name, roles=(), csrf="", created_at_ms=0)
        wiring = wiring_of(request)
        opened = await wiring.reviewers.change_password(session, current, chosen, origin_of(request))
    wiring.credentials.forget(visitor.token)
    response = RedirectResponse("/me?done=password", 303)
    set_session(response, wiring.settings, opened.token)
    return response


@router.post("/me/sessions")
async def end_sessions(request: Request, visitor: SignedIn) -> Response:
    """End the session that the form names, or all other sessions."""
    reviewers = wiring_of(request).reviewers
    async with receive_own(request, visitor) as post:
        if post.get("which") == "others":
            await reviewers.end_sessions(visitor.name, but=visitor.token)
        else:
            await reviewers.end_session(visitor.name, post.get("which", ""))
    return RedirectResponse("/me?done=sessions", 303)


@router.post("/me/display")
async def change_display(request: Request, visitor: SignedIn) -> Response:
    """Keep theme, density, single keys and language in this browser."""
    post = await read_post(request, visitor)
    response = RedirectResponse("/me?done=display", 303)
    display = make_display(post.get("theme", ""), post.get("density", ""), post.get("keys", ""))
    set_display(response, wiring_of(request).settings, display)
    set_language(response, wiring_of(request).settings, post.get("language", ""))
    return response


def receive_own(request: Request, visitor: Visitor, typed: str = "") -> AbstractAsyncContextManager[Post]:
    """Yield a form of the account page; a refused one is shown again with its input, named `typed`."""

    async def gather_again(post: Post) -> dict[str, Any]:
        return {**await gather(request, visitor), **({typed: post} if typed else {})}

    return receive(request, visitor, PAGE, gather_again)


async def gather(request: Request, visitor: Visitor) -> dict[str, Any]:
    """Return what the account page shows."""
    wiring = wiring_of(request)
    person = await wiring.reviewers.find(visitor.name)
    sessions = await wiring.reviewers.list_sessions(visitor.name)
    preferences = await wiring.duty.find_preferences(visitor.name)
    return {
        "title": _("Me"),
        "languages": list_languages(),
        "chosen_language": request.cookies.get(COOKIE, ""),
        "own": id_of_session(hash_token(visitor.token)),
        "sessions": [(id_of_session(login.token_hash), login.session) for login in sessions],
        "has_password": person is not None and bool(person.password_hash),
        "shortest": SHORTEST_PASSWORD,
        "longest": LONGEST_PASSWORD,
        "own_keys": await list_own_keys(wiring, visitor.principal),
        "key_uses": await wiring.api_keys.list_uses(),
        "contacts": await wiring.contacts.list_of(visitor.name),
        "contact_code": None,
        "contact": {},
        "typed": write_preferences(preferences),
        "zone": ZoneInfo(preferences.time_zone),
        "absences": await wiring.duty.list_absences(visitor.name),
        "absence": {},
    }


@router.post("/me/preferences")
async def save_preferences(request: Request, visitor: SignedIn) -> Response:
    """Save how the visitor is notified."""
    async with receive_own(request, visitor, "typed") as post:
        preferences = read_preferences(post)
        await wiring_of(request).duty.save_preferences(visitor.name, preferences, visitor.name)
    response = RedirectResponse("/me?done=preferences", 303)
    set_zone(response, wiring_of(request).settings, preferences.time_zone)
    return response


@router.post("/me/absences")
async def add_absence(request: Request, visitor: SignedIn) -> Response:
    """Add an absence; its times are in the visitor's time zone."""
    duty = wiring_of(request).duty
    async with receive_own(request, visitor, "absence") as post:
        zone = ZoneInfo((await duty.find_preferences(visitor.name)).time_zone)
        fault = _("Enter the start and the end of the absence.")
        from_ms, to_ms = (read_moment(post.get(name, ""), zone, fault) for name in ("from", "to"))
        delegate = post.get("delegate", "").strip() or None
        await duty.add_absence(visitor.name, from_ms, to_ms, delegate, visitor.name)
    return RedirectResponse("/me?done=absences", 303)


@router.post("/me/absences/delete")
async def delete_absence(request: Request, visitor: SignedIn) -> Response:
    """Delete the absence that the form names."""
    async with receive_own(request, visitor) as post:
        await wiring_of(request).duty.delete_absence(visitor.name, post.get("which", ""), visitor.name)
    return RedirectResponse("/me?done=absences", 303)


def read_preferences(post: Post) -> Preferences:
    """Return the preferences of a form; raises `InvalidInput`."""
    given: dict[str, Any] = {
        "time_zone": read_zone(post),
        "quiet_hours": read_hours(post, "quiet"),
        "working_hours": read_working_hours(post),
        "digest": post.get("digest", "off"),
        "cap_per_hour": post.get("cap", "").strip() or None,
        "language": post.get("language", "").strip() or "en",
    }
    try:
        return Preferences.model_validate(given)
    except ValidationError as error:
        raise describe_misfit(error) from error


def describe_misfit(error: ValidationError) -> InvalidInput:
    """Return the first fault of a form as an error."""
    fault = error.errors(include_url=False, include_input=False)[0]
    field = str(fault["loc"][0]).replace("_", " ").capitalize() if fault["loc"] else _("The form")
    message = fault["msg"].removeprefix("Value error, ")
    return InvalidInput(_("%(field)s: %(fault)s. Correct it and send the form again.", field=field, fault=message))


@router.post("/me/contacts")
async def create_code(request: Request, visitor: SignedIn) -> Response:
    """Create a code and show it once."""
    async with receive_own(request, visitor, "contact") as post:
        require_own_password(visitor.principal)
        channel = post.get("channel", "").strip()
        code = await wiring_of(request).contacts.create_code(visitor.name, channel, visitor.principal.made)
    return await show(request, visitor, PAGE, **{**await gather(request, visitor), "contact_code": code})


@router.post("/me/contacts/unlink")
async def unlink(request: Request, visitor: SignedIn) -> Response:
    """Unlink the address that the form names."""
    async with receive_own(request, visitor) as post:
        await wiring_of(request).contacts.unlink(visitor.name, post.get("which", ""), visitor.name)
    return RedirectResponse("/me?done=contacts", 303)
