"""Routes stricter than FastAPI's about JSON and queries, and long polls.

The credential is checked before the body is read. A poll answers when its condition holds, the time is over, or the
caller hangs up.
"""

import asyncio
import re
from asyncio import Event
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from sayso.core.canonical_json import parse_json
from sayso.core.clock import monotonic_ms
from sayso.core.records.decisions import ActorKind
from sayso.errors import InvalidHeader, InvalidInput, InvalidJson, NotAllowed, NotAuthenticated, UnsupportedMediaType
from service.core.auth.credentials import Principal, require_network, require_scope
from service.core.auth.doors import require_operation
from service.core.auth.hosts import origin_of
from service.core.operations.acts import ACTS, Act, note_state, record_act
from service.core.store.connection.watch import HEARD_WITHIN_S, Watch, wait_woken
from service.core.wiring import Process, Wiring
from service.edge.http.middleware import admit_body

_NO_TEXT = re.compile("[\x00-\x1f\x7f\ufffd\ud800-\udfff]")
Respond = Callable[[Request], Coroutine[Any, Any, Response]]


class OpenRoute(APIRoute):
    """A route without a credential, with strict queries and bodies."""

    def get_route_handler(self) -> Respond:
        """Return a function that checks the request, then calls FastAPI's own handler."""
        respond_checked = super().get_route_handler()
        names = frozenset(_query_names(self.dependant))
        body = self.body_field
        required = body is not None and body.field_info.is_required()

        async def respond(request: Request) -> Response:
            await self.admit(request)
            check_query(request, names)
            if body is not None:
                raw = await _read_body(request, required=required)
                request.state.sent = parse_json(raw) if raw else None
                request = _ReadRequest(request, raw, request.state.sent)
            return await respond_checked(request)

        return respond

    async def admit(self, request: Request) -> None:
        """Identify the caller, or raise."""


class SignedInRoute(OpenRoute):
    """A route that needs a credential. Sets `request.state.principal`, and records acts in the activity log."""

    def get_route_handler(self) -> Respond:
        """Return a function that checks the request and records what it did."""
        respond, act = super().get_route_handler(), ACTS.get(self.operation_id or "")
        if act is None:
            return respond

        async def respond_recorded(request: Request) -> Response:
            return await record_act(request, respond, partial(_find_act, request, act))

        return respond_recorded

    async def admit(self, request: Request) -> None:
        """Identify the caller. Raises `NotAuthenticated`, and `NotAllowed` for a role or key without this operation."""
        request.state.principal = principal = await identify(request)
        if principal.kind is ActorKind.HUMAN:
            require_operation(principal.rights, self.operation_id or "")
        require_scope(principal, self.operation_id or "")
        if (act := ACTS.get(self.operation_id or "")) is not None:
            await note_state(request, (act,), principal)


async def _find_act(request: Request, act: Act) -> tuple[Act, Mapping[str, Any]]:
    sent = getattr(request.state, "sent", None)
    return act, sent if isinstance(sent, dict) else {}


async def identify(request: Request) -> Principal:
    """Return the caller of the bearer token. Cookies are ignored. Raises `NotAuthenticated`."""
    process: Process = request.app.state.process
    token, address = bearer_token(request), origin_of(request).address
    name = ""
    try:
        principal = await process.credentials.identify(token)
        name = principal.name
        require_network(principal.terms, address)
    except (NotAuthenticated, NotAllowed) as error:
        if token is not None:
            await process.wiring.activity.refuse("credential_used", name, error.message, door="api", address=address)
        raise
    admit_body(request)
    request.state.wiring = process.wiring
    return principal


def bearer_token(request: Request) -> str | None:
    """Return the token of the `Authorization: Bearer` header, or None without the header."""
    headers = request.headers.getlist("authorization")
    if not headers:
        return None
    scheme, _, token = headers[0].partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise NotAuthenticated("Send one credential, as 'Authorization: Bearer <key or session token>'.")
    return token.strip()


class _ReadRequest(Request):
    def __init__(self, request: Request, raw: bytes, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._raw = raw
        self._value = value

    async def body(self) -> bytes:
        return self._raw

    async def json(self) -> Any:
        return self._value


async def read_json(request: Request, *, required: bool = True) -> Any:
    """Return the body, one strict JSON value; None for an empty body unless it is required."""
    raw = await _read_body(request, required=required)
    return parse_json(raw) if raw else None


async def _read_body(request: Request, *, required: bool) -> bytes:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise UnsupportedMediaType(f"The content encoding {encoding[:40]!r} is not supported. Send plain JSON.")
    raw = await _receive_body(request)
    if not raw and not required:
        return raw
    kinds = request.headers.getlist("content-type")
    if len(kinds) > 1:
        raise InvalidHeader("The header Content-Type was sent twice. Send it once.")
    kind, _, parameters = (kinds[0] if kinds else "").partition(";")
    if kind.strip().lower() != "application/json":
        raise UnsupportedMediaType()
    if parameters.strip().lower().replace('"', "") not in ("", "charset=utf-8"):
        raise UnsupportedMediaType("JSON must be UTF-8. Send Content-Type: application/json.")
    if not raw:
        raise InvalidJson("The body is empty. Send one JSON object.")
    return raw


async def _receive_body(request: Request) -> bytes:
    """Return the raw body. Starlette's asynchronous generator would cost as much as parsing the JSON."""
    parts: list[bytes] = []
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def check_query(request: Request, names: frozenset[str]) -> None:
    """Raise `InvalidInput` for unknown or repeated query parameters, and for control characters."""
    seen: set[str] = set()
    for name, value in request.query_params.multi_items() if request.scope["query_string"] else ():
        if name not in names:
            known = f"Known parameters: {', '.join(sorted(names))}" if names else "This path has no parameters"
            raise InvalidInput(f"The query parameter {name[:80]!r} is unknown. {known}.", parameter=name[:80])
        if name in seen:
            raise InvalidInput(f"The query parameter {name!r} was sent twice. Send it once.", parameter=name)
        seen.add(name)
        _check_text(value, f"The query parameter {name!r}")
    for name, value in request.path_params.items():
        _check_text(str(value), f"The {name} in the path")


def _check_text(text: str, what: str) -> None:
    if _NO_TEXT.search(text):
        raise InvalidInput(f"{what} has control characters, or bytes that are not UTF-8.")


def _query_names(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        yield parameter.alias
    for inner in dependant.dependencies:
        yield from _query_names(inner)


REVALIDATE_S = 5.0  # how often a stream checks its credential; a long poll checks when it answers
T = TypeVar("T")


async def wait_for(
    request: Request,
    topic: str,
    read: Callable[[], Awaitable[T]],
    *,
    who: str,
    done: Callable[[T], bool],
    wait_s: int,
    identify: Callable[[Request], Awaitable[object]] = identify,
) -> T:
    """Return the result of `read` as soon as it is `done`, or after `wait_s` seconds.

    The topic is subscribed before the first read, so that no change is missed. Each notification causes one read.
    A closing service answers immediately. `who` is the caller's name. Raises what `identify` raises when the credential
    has become invalid, `TooManyRequests` for too many waits, and `ClientDisconnect` when the caller hangs up.
    """
    if not wait_s:
        return await read()
    wiring: Wiring = request.state.wiring
    watch: Watch = wiring.watch
    closing: Event = request.app.state.closing
    until_ms = monotonic_ms() + wait_s * 1000
    with wiring.waiters.take(who), watch.on(topic) as moved, _watching_disconnect(request, moved) as hung_up:
        await wait_woken(moved, min(wait_s, HEARD_WITHIN_S))
        while True:
            if hung_up.done():
                hung_up.result()
                raise ClientDisconnect
            async with watch.readers:
                await identify(request)
                result = await read()
            left_s = (until_ms - monotonic_ms()) / 1000
            if left_s <= 0 or closing.is_set() or done(result):
                return result
            await wait_woken(moved, left_s)


@contextmanager
def _watching_disconnect(request: Request, moved: Event) -> Iterator[asyncio.Task[None]]:
    task = asyncio.create_task(_await_disconnect(request))
    task.add_done_callback(lambda _: moved.set())
    try:
        yield task
    finally:
        task.cancel()


async def _await_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
