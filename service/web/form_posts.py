"""Read what a form sent, and only what one of our own pages sent."""

import asyncio
from collections.abc import Mapping
from hmac import compare_digest
from urllib.parse import parse_qsl, urlsplit

from fastapi import Request

from sayso.errors import InvalidInput, NotAllowed, SaysoError
from service.web.sessions import Visitor, process_of

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 200
_SMALL_BYTES = 32_768
"""A longer form is parsed in a thread: every `%0D%0A` in it is a step of its own."""

Post = Mapping[str, str]
"""What was typed, by the name of the control."""


SEND_AGAIN = "Nothing was changed. Check your input below and send it again."
"""What a page says of an `EarlierSignIn` when it shows itself again."""


class EarlierSignIn(NotAllowed):
    """This page belongs to an earlier sign-in. Open it again and send the form from there."""


def describe_refusal(error: SaysoError) -> str:
    """Say why a form was refused, on a page that shows it again with all that was typed."""
    return f"You have signed in again. {SEND_AGAIN}" if isinstance(error, EarlierSignIn) else error.message


async def check_origin(request: Request) -> None:
    """Refuse a form that another site sent; raises `NotAllowed`.

    Browsers say where a request comes from: in `Sec-Fetch-Site`, or, over plain http, in `Origin`. A client that says
    neither is no browser and carries nobody's cookie.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site in ("same-origin", "none") or (site is None and (origin is None or _is_own(request, origin))):
        return
    raise NotAllowed("This form was sent from another site. Open the page here and send it again.")


async def read_post(request: Request, visitor: Visitor) -> Post:
    """Return what a form sent; raises `InvalidInput`, or `EarlierSignIn` when it was not a page of this session."""
    post = await read_form(request)
    check_session(post, visitor)
    return post


async def read_form(request: Request) -> Post:
    """Return what a form sent, whoever sent it; raises `InvalidInput`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise InvalidInput(f"Send the form as {_FORM}.")
    body = await request.body()
    return _parse(body) if len(body) <= _SMALL_BYTES else await asyncio.to_thread(_parse, body)


def check_session(post: Post, visitor: Visitor) -> None:
    """Refuse a form that no page of this very session sent; raises `EarlierSignIn`."""
    if not compare_digest(post.get("csrf", "").encode(), visitor.csrf.encode()):
        raise EarlierSignIn


def _parse(body: bytes) -> Post:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise InvalidInput("The form cannot be read. Open the page again and send it from there.") from error
    post = dict(pairs)
    if len(post) != len(pairs):
        raise InvalidInput("The form names a field twice. Open the page again and send it from there.")
    return post


def _is_own(request: Request, origin: str) -> bool:
    """Whether the origin is the address the browser used, or the one the service is known by."""
    own = {request.headers.get("host"), urlsplit(process_of(request).settings.public_url).netloc}
    return urlsplit(origin).netloc in own
