"""A secret that is shown once: a new password or key, never stored in plain text and never in a URL."""

from typing import NamedTuple

from fastapi import Request
from fastapi.responses import Response

from service.web.pages import show
from service.web.sessions import Visitor


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
