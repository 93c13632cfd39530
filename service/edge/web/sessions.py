"""Visitors of the pages: the session cookie and the signed-in person, and the forms that they send.

Forms from other sites or sessions are refused, and acts are recorded.
"""

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from hmac import compare_digest
from typing import Annotated, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from sayso.core.records.decisions import ActorKind
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, NotAllowed, NotAuthenticated, SaysoError
from service.core.auth.credentials import Principal
from service.core.auth.doors import require_page
from service.core.auth.hosts import read_place
from service.core.auth.roles import Rights
from service.core.operations.acts import PAGE_ACTS, Act, Respond, note_state, record_act
from service.core.settings import Settings
from service.core.wiring import Process, Wiring
from service.edge.http.assets import mask_token, unmask_token
from service.edge.http.middleware import admit_body

_PAGES = re.compile(  # pages that a sign-in may redirect to; others redirect to the inbox
    r"/(?:|batch(?:/[\w-]+)?|history|insights|runs|runs/[\w-]+(?:/cancel)?|operate|people|keys|activity|welcome|me(?:/notifications)?"
    r"|groups|channels|items/[\w-]+/[\w-]+)"
    r"(?:\?[\w=&%.+-]*)?",
    re.ASCII,
)

REFRESH_HEADER = "x-sayso-live"  # of an open page's own requests, which do not keep a session alive


class Visitor(NamedTuple):
    """A signed-in person, with the token of their session."""

    principal: Principal
    token: str
    seen: str = ""
    """The mark of the tenant's changes before the page was read; its stream begins there."""

    @property
    def name(self) -> str:
        return self.principal.name

    @property
    def tenant(self) -> str:
        return self.principal.tenant

    @property
    def rights(self) -> Rights:
        return self.principal.rights

    @property
    def csrf(self) -> str:
        """The CSRF token of every form of this session, masked anew each time."""
        return mask_token(self.principal.csrf)


def wiring_of(request: Request) -> Wiring:
    """Return the parts that serve the visitor's tenant."""
    wiring: Wiring = request.state.wiring
    return wiring


def process_of(request: Request) -> Process:
    """Return the parts of this process."""
    process: Process = request.app.state.process
    return process


async def find_visitor(request: Request) -> Visitor:
    """Return the signed-in person; raises `NotAuthenticated`, which shows the sign-in page."""
    process = process_of(request)
    token = session_token(request, process.settings)
    is_refresh = REFRESH_HEADER in request.headers or request.url.path == "/live"
    principal = await process.credentials.identify(token, in_use=not is_refresh)
    if principal.kind is not ActorKind.HUMAN or principal.key_id is not None or token is None:
        raise NotAuthenticated("A key cannot open pages. Sign in with a name and a password.")
    admit_body(request)
    request.state.wiring = wiring = process.wiring
    seen = await wiring.watch.mark(principal.tenant) if request.method == "GET" and not is_refresh else ""
    visitor = Visitor(principal, token, seen)
    request.state.visitor = visitor
    path = request.scope["route"].path
    require_page(principal.rights, request.method, path)
    if request.method == "POST":
        await note_state(request, PAGE_ACTS.get(path, {}).values(), principal)
    if REFRESH_HEADER in request.headers:  # after an event, which a freeze sends before caches are refreshed
        await wiring.freezes.known(fresh=True)
    return visitor


SignedIn = Annotated[Visitor, Depends(find_visitor)]


def cookie_name(settings: Settings) -> str:
    """Return the cookie's name; over https the `__Host-` prefix makes browsers enforce `Secure`, host and path."""
    port = urlsplit(settings.public_url).port or 80  # cookies ignore ports, and one host may run several services
    return "__Host-sayso" if settings.secure_cookies else f"sayso_session_{port}"


def session_token(request: Request, settings: Settings) -> str | None:
    """Return the token from the cookie."""
    return request.cookies.get(cookie_name(settings))


def set_session(response: Response, settings: Settings, token: str) -> None:
    """Set the cookie of a session."""
    set_cookie(response, settings, cookie_name(settings), token, settings.session_max_s)


def clear_session(response: Response, settings: Settings) -> None:
    """Delete the cookie of a session."""
    delete_cookie(response, settings, cookie_name(settings))


def set_cookie(response: Response, settings: Settings, name: str, value: str, kept_s: int) -> None:
    """Set a cookie of all pages, hidden from scripts."""
    secure = settings.secure_cookies
    response.set_cookie(name, value, max_age=kept_s, path="/", secure=secure, httponly=True, samesite="lax")


def delete_cookie(response: Response, settings: Settings, name: str) -> None:
    """Delete a cookie of all pages."""
    response.delete_cookie(name, path="/", secure=settings.secure_cookies, httponly=True, samesite="lax")


def safe_next(path: str | None) -> str:
    """Return the path to show after a sign-in; unknown paths become the inbox."""
    return path if path is not None and _PAGES.fullmatch(path) else "/"


_FORM = "application/x-www-form-urlencoded"
_MAX_REASON_CHARS = 2000
_SMALL_BYTES = 32_768  # longer forms are parsed in a thread, because every `%0D%0A` takes time
Post = Mapping[str, str]  # the submitted values by control name

SEND_AGAIN = mark("Nothing was changed. Check your input below and send it again.")
"""The sentence of a page that shows a form again after `EarlierSignIn`."""


class EarlierSignIn(NotAllowed):
    """This page belongs to an earlier sign-in. Open it again, and send the form from there."""


def describe_refusal(error: SaysoError) -> str:
    """Return why a form was refused, for the page that shows it again."""
    again = _("You have signed in again. %(rest)s", rest=_(SEND_AGAIN))
    return again if isinstance(error, EarlierSignIn) else _(error.message)


async def check_origin(request: Request) -> None:
    """Raise `NotAllowed` for a form from another site.

    Browsers send `Sec-Fetch-Site`, or `Origin` over plain http. A client without both is no browser, so it holds no
    visitor's cookie.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site in ("same-origin", "none") or (site is None and (origin is None or _is_own(request, origin))):
        return
    raise NotAllowed(_("This form was sent from another site. Open the page here and send it again."))


async def read_post(request: Request, visitor: Visitor) -> Post:
    """Return a form of this session; raises `InvalidInput` or `EarlierSignIn`."""
    post = await read_form(request)
    check_session(post, visitor)
    return post


async def read_form(request: Request) -> Post:
    """Return a form of any session; raises `InvalidInput`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise InvalidInput(f"Send the form as {_FORM}.")
    body = await request.body()
    return _parse(body) if len(body) <= _SMALL_BYTES else await asyncio.to_thread(_parse, body)


def check_session(post: Post, visitor: Visitor) -> None:
    """Raise `EarlierSignIn` for a form of another session."""
    if not compare_digest(unmask_token(post.get("csrf", "")), visitor.principal.csrf):
        raise EarlierSignIn


def read_reason(post: Post) -> str:
    """Return the form's reason, with LF line breaks and within the limit."""
    return post.get("reason", "").replace("\r\n", "\n").strip()[:_MAX_REASON_CHARS]


def _parse(body: bytes) -> Post:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=2000)
    except ValueError as error:
        raise InvalidInput(_("The form cannot be read. Open the page again and send it from there.")) from error
    post = dict(pairs)
    if len(post) != len(pairs):
        raise InvalidInput(_("The form names a field twice. Open the page again and send it from there."))
    return post


def _is_own(request: Request, origin: str) -> bool:
    """Return whether an origin is the public address, or the host of the request over the scheme of either."""
    sender, public = read_place(origin), read_place(process_of(request).settings.public_url)
    if sender is None or public is None:
        return False
    schemes = {public.scheme} if public.scheme == "https" else {public.scheme, request.url.scheme}
    host = request.headers.get("host", "")
    return sender in {public, *(read_place(f"{scheme}://{host}") for scheme in schemes)}


class RecordedRoute(APIRoute):
    """A route of a page; its acts are in `PAGE_ACTS`."""

    def get_route_handler(self) -> Respond:
        """Return a function that serves the page and records what its form did."""
        respond, acts = super().get_route_handler(), PAGE_ACTS.get(self.path)
        if acts is None or not (self.methods == {"POST"} or self.path == "/history/export"):
            return respond

        async def respond_recorded(request: Request) -> Response:
            return await record_act(request, respond, partial(_find_act, request, acts))

        return respond_recorded


async def _find_act(request: Request, acts: Mapping[str, Act]) -> tuple[Act | None, Mapping[str, str]]:
    """Return the act of the form that the page has read, and the form; of an unread one the first act."""
    try:
        post = await read_form(request) if hasattr(request, "_body") or hasattr(request.state, "visitor") else {}
    except SaysoError:
        post = {}
    return acts.get(post.get("act", ""), acts.get("")) if post or "" in acts else next(iter(acts.values())), post
