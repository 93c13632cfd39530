"""The page Me: password, sessions, display, channels, preferences and absences. Also the posts of the first three."""

from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, SaysoError
from service.auth.hosts import origin_of
from service.auth.reviewers import hash_token, id_of_session
from service.operations.people.keys import list_own_keys
from service.settings import LONGEST_PASSWORD, SHORTEST_PASSWORD
from service.store.people import Session
from service.web.errors import show_page_again
from service.web.form_posts import RecordedRoute, check_session, describe_refusal, read_form, read_post
from service.web.languages import COOKIE, list_languages
from service.web.pages import show
from service.web.people.display_choices import make_display, set_display, set_language
from service.web.people.hours import write_preferences
from service.web.sessions import SignedIn, Visitor, set_session, wiring_of

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
    return await show(request, visitor, PAGE, **await gather(request, visitor, done=_DONE.get(done, "")))


@router.post("/me/password")
async def change_password(request: Request, visitor: SignedIn) -> Response:
    """Change the password, and open a new session for this browser."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        current, chosen = post.get("current", ""), post.get("password", "")
        if chosen != post.get("again", ""):
            raise InvalidInput(_("The two new passwords differ. Enter them again."))
        session = Session(tenant=visitor.tenant, name=visitor.name, roles=(), csrf="", created_at_ms=0)
        wiring = wiring_of(request)
        opened = await wiring.reviewers.change_password(session, current, chosen, origin_of(request))
    except SaysoError as error:
        await show_again(request, visitor, error)
        raise
    wiring.credentials.forget(visitor.token)
    response = RedirectResponse("/me?done=password", 303)
    set_session(response, wiring.settings, opened.token)
    return response


@router.post("/me/sessions")
async def end_sessions(request: Request, visitor: SignedIn) -> Response:
    """End the session that the form names, or all other sessions."""
    post = await read_form(request)
    reviewers = wiring_of(request).reviewers
    try:
        check_session(post, visitor)
        if post.get("which") == "others":
            await reviewers.end_sessions(visitor.name, but=visitor.token)
        else:
            await reviewers.end_session(visitor.name, post.get("which", ""))
    except SaysoError as error:
        await show_again(request, visitor, error)
        raise
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


async def show_again(request: Request, visitor: Visitor, error: SaysoError, **typed: Any) -> None:
    """Show the account page with the reason and the input of a refused form."""
    context = {**await gather(request, visitor, sentence=describe_refusal(error)), **typed}
    show_page_again(request, PAGE, visitor=visitor, **context)


async def gather(request: Request, visitor: Visitor, sentence: str = "", done: str = "") -> dict[str, Any]:
    """Return what the account page shows."""
    wiring = wiring_of(request)
    sessions = await wiring.reviewers.list_sessions(visitor.name)
    preferences = await wiring.duty.find_preferences(visitor.name)
    return {
        "title": _("Me"),
        "sentence": sentence,
        "done": done,
        "languages": list_languages(),
        "chosen_language": request.cookies.get(COOKIE, ""),
        "own": id_of_session(hash_token(visitor.token)),
        "sessions": [(id_of_session(login.token_hash), login.session) for login in sessions],
        "shortest": SHORTEST_PASSWORD,
        "longest": LONGEST_PASSWORD,
        "own_keys": await list_own_keys(wiring, visitor.principal),
        "key_uses": await wiring.api_keys.list_uses(),
        "contacts": await wiring.contacts.list_of(visitor.name),
        "contact_code": None,
        "channel": "",
        "typed": write_preferences(preferences),
        "zone": ZoneInfo(preferences.time_zone),
        "absences": await wiring.duty.list_absences(visitor.name),
        "absence": {},
    }
