"""SCIM 2.0 under `/scim/v2`, loaded at the first request: its library is large, and most desks have no directory."""

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

PREFIX = "/scim/v2"


async def scim(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a request of a directory."""
    from service.features.scim.routes import serve

    response = await serve(Request(scope, receive, send), PREFIX)
    await response(scope, receive, send)
