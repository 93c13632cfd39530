"""Know who is looking: the session cookie, and the sign-in page for everybody without one."""

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.responses import Response

from sayso.errors import NotAuthenticated
from sayso.records.decisions import ActorKind
from service.auth.credentials import Principal
from service.settings import Settings
from service.wiring import Process, Wiring

_PLACES = re.compile(
    r"/(?:|decided|runs|runs/[\w-]+(?:/cancel)?|freezes|account|items/[\w-]+/[\w-]+)(?:\?[\w=&%.+-]*)?", re.ASCII
)
"""The pages that a sign-in may lead to; anything else leads to the inbox."""


BY_ITSELF = "x-sayso-live"
"""The header of what an open page fetches by itself: nobody is there, so the session grows idle."""


@dataclass(frozen=True)
class Visitor:
    """A signed-in person, with the token of their session."""

    principal: Principal
    token: str

    @property
    def name(self) -> str:
        """Who they are."""
        return self.principal.name

    @property
    def tenant(self) -> str:
        """Whose records they see."""
        return self.principal.tenant

    @property
    def csrf(self) -> str:
        """The secret that every form of this session carries."""
        return self.principal.csrf


def wiring_of(request: Request) -> Wiring:
    """Return the parts that serve the visitor's tenant."""
    wiring: Wiring = request.state.wiring
    return wiring


def process_of(request: Request) -> Process:
    """Return the parts of this process."""
    process: Process = request.app.state.process
    return process


async def find_visitor(request: Request) -> Visitor:
    """Return who is signed in; raises `NotAuthenticated`, which shows as the sign-in page."""
    process = process_of(request)
    token = session_token(request, process.settings)
    by_itself = BY_ITSELF in request.headers or request.url.path == "/live"
    principal = await process.credentials.identify(token, in_use=not by_itself)
    if principal.kind is not ActorKind.HUMAN or token is None:
        raise NotAuthenticated("An agent's key opens no pages; sign in with a name and a password.")
    visitor = Visitor(principal, token)
    request.state.wiring = process.tenant(principal.tenant)
    request.state.visitor = visitor
    return visitor


SignedIn = Annotated[Visitor, Depends(find_visitor)]


def cookie_name(settings: Settings) -> str:
    """Name the cookie; under https its prefix makes browsers insist on `Secure`, on this host and on the whole path."""
    port = urlsplit(settings.public_url).port or 80  # cookies know no ports, and a host may have Sayso on several
    return "__Host-sayso" if settings.secure_cookies else f"sayso_session_{port}"


def session_token(request: Request, settings: Settings) -> str | None:
    """Return the token in the cookie."""
    return request.cookies.get(cookie_name(settings))


def set_session(response: Response, settings: Settings, token: str) -> None:
    """Put a session's token into the browser, out of reach of scripts."""
    response.set_cookie(
        cookie_name(settings),
        token,
        max_age=settings.session_max_s,
        path="/",
        secure=settings.secure_cookies,
        httponly=True,
        samesite="lax",
    )


def clear_session(response: Response, settings: Settings) -> None:
    """Take the token out of the browser."""
    response.delete_cookie(
        cookie_name(settings), path="/", secure=settings.secure_cookies, httponly=True, samesite="lax"
    )


def safe_next(place: str | None) -> str:
    """Return where to go after signing in: one of our own pages, by its path, whatever was asked for."""
    return place if place is not None and _PLACES.fullmatch(place) else "/"
