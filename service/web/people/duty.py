"""Preferences and absences on the account page."""

from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from sayso.core.text.language import _
from sayso.errors import InvalidInput, SaysoError
from service.store.directory.duty import Preferences
from service.web.form_posts import Post, RecordedRoute, check_session, read_form
from service.web.people.accounts import show_again
from service.web.people.hours import read_hours, read_moment, read_working_hours
from service.web.sessions import SignedIn, wiring_of

router = APIRouter(route_class=RecordedRoute)


@router.post("/me/preferences")
async def save_preferences(request: Request, visitor: SignedIn) -> Response:
    """Save how the visitor is notified."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        await wiring_of(request).duty.save_preferences(visitor.name, read_preferences(post), visitor.name)
    except SaysoError as error:
        await show_again(request, visitor, error, typed=post)
        raise
    return RedirectResponse("/me?done=preferences", 303)


@router.post("/me/absences")
async def add_absence(request: Request, visitor: SignedIn) -> Response:
    """Add an absence; its times are in the visitor's time zone."""
    post = await read_form(request)
    duty = wiring_of(request).duty
    try:
        check_session(post, visitor)
        zone = ZoneInfo((await duty.find_preferences(visitor.name)).time_zone)
        fault = _("Enter the start and the end of the absence.")
        from_ms, to_ms = (read_moment(post.get(name, ""), zone, fault) for name in ("from", "to"))
        delegate = post.get("delegate", "").strip() or None
        await duty.add_absence(visitor.name, from_ms, to_ms, delegate, visitor.name)
    except SaysoError as error:
        await show_again(request, visitor, error, absence=post)
        raise
    return RedirectResponse("/me?done=absences", 303)


@router.post("/me/absences/delete")
async def delete_absence(request: Request, visitor: SignedIn) -> Response:
    """Delete the absence that the form names."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        await wiring_of(request).duty.delete_absence(visitor.name, post.get("which", ""), visitor.name)
    except SaysoError as error:
        await show_again(request, visitor, error)
        raise
    return RedirectResponse("/me?done=absences", 303)


def read_preferences(post: Post) -> Preferences:
    """Return the preferences of a form; raises `InvalidInput`."""
    given: dict[str, Any] = {
        "time_zone": post.get("time_zone", "").strip() or "UTC",
        "quiet_hours": read_hours(post, "quiet"),
        "working_hours": read_working_hours(post, post.get("time_zone", "").strip() or "UTC"),
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
