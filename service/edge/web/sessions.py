"""Visitors of the pages: the session cookie and the signed-in person."""

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.responses import Response

from sayso.core.records.decisions import ActorKind
from sayso.errors import NotAuthenticated
from service.core.auth.credentials import Principal
from service.core.settings import Settings
from service.core.wiring import Process, Wiring
from service.edge.http.assets import mask_token
from service.edge.http.middleware import admit_body

_PAGES = re.compile(  # pages that a sign-in may redirect to; others redirect to the inbox
    r"/(?:|batch(?:/[\w-]+)?|history|insights|runs|runs/[\w-]+(?:/cancel)?|operate|people|keys|activity|welcome|me(?:/notifications)?"
    r"|groups|channels|items/[\w-]+/[\w-]+)"
    r"(?:\?[\w=&%.+-]*)?",
    re.ASCII,
)

REFRESH_HEADER = "x-sayso-live"  # of an open page's own requests, which do not keep a session alive


@dataclass(frozen=True)
class Visitor:
    """A signed-in person, with the token of their session."""

    principal: Principal
    token: str

    @property
    def name(self) -> str:
        return self.principal.name

    @property
    def tenant(self) -> str:
        return self.principal.tenant

    @property
    def is_admin(self) -> bool:
        return "admin" in self.principal.roles

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
    if principal.kind is not ActorKind.HUMAN or token is None:
        raise NotAuthenticated("An agent's key cannot open pages. Sign in with a name and a password.")
    visitor = Visitor(principal, token)
    admit_body(request)
    request.state.wiring = process.tenant(principal.tenant)
    request.state.visitor = visitor
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
