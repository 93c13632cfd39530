"""Forms of the pages: parse them, refuse forms from other sites or sessions, and record their acts."""

import asyncio
from collections.abc import Mapping
from functools import partial
from hmac import compare_digest
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.routing import APIRoute

from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, NotAllowed, SaysoError
from service.core.auth.hosts import read_place
from service.core.auth.reviewers import require_role
from service.core.operations.acts import PAGE_ACTS, Act, Respond, record_act
from service.edge.http.assets import unmask_token
from service.edge.web.sessions import Visitor, process_of

_FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 2000
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


def check_admin(post: Post, visitor: Visitor) -> None:
    """Raise `EarlierSignIn` for a form of another session, and `NotAllowed` for one of somebody who is no admin."""
    check_session(post, visitor)
    require_role(visitor.principal.roles, "admin")


def read_reason(post: Post) -> str:
    """Return the form's reason, with LF line breaks and within the limit."""
    return post.get("reason", "").replace("\r\n", "\n").strip()[:_MAX_REASON_CHARS]


def _parse(body: bytes) -> Post:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
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
        post = await read_form(request) if hasattr(request, "_body") else {}
    except SaysoError:
        post = {}
    return acts.get(post.get("act", ""), acts.get("")) if post or "" in acts else next(iter(acts.values())), post
