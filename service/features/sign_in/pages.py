"""Signing in with a provider, linking an account to it, signing out there, and the provider's own logouts."""

from collections.abc import Awaitable
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from sayso.core.clock import new_secret
from sayso.core.text.language import _
from sayso.errors import NotAuthenticated, SaysoError
from service.core.auth.hosts import origin_of
from service.core.settings import Settings
from service.edge.web.pages import render, show_again
from service.edge.web.sessions import (
    Post,
    RecordedRoute,
    find_visitor,
    process_of,
    read_form,
    safe_next,
    set_cookie,
    set_session,
)
from service.edge.web.sign_ins import close_session, show_sign_in
from service.features.sign_in.accounts import Completed, ProviderSignIns, Returned, refuse
from service.features.sign_in.clients import ProviderClient
from service.features.sign_in.store import UNDER_WAY_MS

Word = Annotated[str, Query(max_length=4_000)]
router = APIRouter(route_class=RecordedRoute)


@router.get("/sign-in/{provider}")
async def begin(request: Request, provider: str, next: str | None = None) -> Response:
    """Lead the browser to the provider; a signed-in person goes on at once."""
    place = safe_next(next)
    sign_ins, client = _find(request, provider)
    try:
        await find_visitor(request)
        return RedirectResponse(place, 303)
    except NotAuthenticated:
        pass
    browser = _read_browser(request) or new_secret()
    _show_again(request, place)
    address = await sign_ins.begin(client, browser, place, origin_of(request))
    response = RedirectResponse(address, 303)
    settings = process_of(request).settings
    set_cookie(response, settings, _cookie_name(settings), browser, UNDER_WAY_MS // 1000)
    return response


@router.get("/sign-in/{provider}/callback")
async def finish(
    request: Request, provider: str, state: Word = "", code: Word = "", error: Word = "", iss: Word | None = None
) -> Response:
    """Sign in the person whom the provider identified; the provider redirects here."""
    sign_ins, client = _find(request, provider)
    _show_again(request, "/")
    returned = Returned(state, code, error, iss)
    finished = sign_ins.finish(client, returned, _read_browser(request), origin_of(request))
    return await _complete(request, client, finished)


@router.post("/sign-in/{provider}")
async def link(request: Request, provider: str) -> Response:
    """Link the account of the identified person's name, whose password the form has, and sign in."""
    sign_ins, client = _find(request, provider)
    post = await read_form(request)
    _show_again(request, "/")
    secret, password, code = (post.get(field, "") for field in ("secret", "password", "code"))
    linked = sign_ins.link(client, secret, password, code, _read_browser(request), origin_of(request))
    return await _complete(request, client, linked)


@router.get("/sign-in/{provider}/end")
async def end(request: Request, provider: str) -> Response:
    """Show where a person who has signed out here also signs out at the provider, if it has such a place."""
    sign_ins, client = _find(request, provider)
    _show_again(request, "/")
    async with client.bounded():
        endpoint = (await client.read_metadata()).end_session_endpoint
    if endpoint is None or urlsplit(endpoint).scheme not in ("http", "https"):
        return RedirectResponse("/sign-in", 303)
    address = sign_ins.end_address(client.provider, endpoint)
    page = "pages/signed_out.html"
    return render(request, page, title=_("Signed out"), provider=client.provider, address=address)


@router.post("/sign-in/{provider}/logout")
async def log_out(request: Request, provider: str) -> Response:
    """End the sessions that a logout token of the provider names (OpenID Connect Back-Channel Logout 1.0)."""
    sign_ins, client = _find(request, provider)
    parts, origin = process_of(request).wiring, origin_of(request)
    try:
        post: Post = await read_form(request)
        ended = await sign_ins.log_out(client, post.get("logout_token", ""))
    except SaysoError as error:
        await parts.activity.refuse("sessions_ended", "", error.message, door="web", address=origin.address)
        return JSONResponse({"error": "invalid_request", "error_description": error.message}, 400)
    marks: dict[str, Any] = {"provider": provider, "sessions": ended}
    await parts.activity.record("sessions_ended", "", door="web", address=origin.address, **marks)
    return Response(status_code=200)


def _find(request: Request, provider: str) -> tuple[ProviderSignIns, ProviderClient]:
    sign_ins = process_of(request).wiring.feature(ProviderSignIns)
    return sign_ins, sign_ins.find(provider)


def _show_again(request: Request, place: str) -> None:
    """Show the next error of this request on the sign-in page."""
    show_again(request, lambda problem: show_sign_in(request, place, sentence=problem.detail, problem=problem))


async def _complete(request: Request, client: ProviderClient, completing: Awaitable[Completed]) -> Response:
    """Complete a sign-in and lead on, or record that it was refused."""
    try:
        completed = await completing
    except SaysoError as refusal:
        await refuse(process_of(request).wiring, client.provider, refusal, origin_of(request))
        raise
    if completed.opened is None:
        facts: dict[str, Any] = {"provider": client.provider, "secret": completed.secret, "name": completed.name}
        return render(request, "pages/sign_in_link.html", title=_("Is this account yours?"), **facts)
    await close_session(request)
    response = RedirectResponse(completed.place, 303)
    set_session(response, process_of(request).settings, completed.opened.token)
    return response


def _cookie_name(settings: Settings) -> str:
    return "__Host-sayso-sign-in" if settings.secure_cookies else f"sayso_sign_in_{settings.port}"


def _read_browser(request: Request) -> str:
    return request.cookies.get(_cookie_name(process_of(request).settings), "")[:200]
