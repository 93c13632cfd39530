"""ASGI guards around the whole app: security headers, body limits, a response to every error, and a clean end."""

from asyncio import Event
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.telemetry import TelemetryConfig
from starlette.datastructures import State
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sayso.core.packages import VERSION, VERSION_HEADER
from sayso.errors import TooLarge, TooManyRequests
from service.core.concurrency import Slots

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}  # it reads the environment

STRANGER_BYTES = 16_384  # largest body of a request before its sender is known
LARGE_UNVERIFIED = 32  # larger bodies that one process reads at the same time to verify the signature over them
_EXCHANGE = "sayso.exchange"
_RETRY_AFTER_S = 5
_FORM_GROWTH = 8  # size factor of JSON in a browser's form: it is indented, and `\n` is sent as `%0D%0A`
Answer = Callable[[Request, Exception], Response]  # returns the response to an error
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
_OURS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    VERSION_HEADER.lower().encode(): VERSION.encode(),
}
SANDBOX = "default-src 'none'; sandbox; frame-ancestors 'none'"
"""The content security policy of an attached file: nothing in it runs or loads."""

_SANDBOXED = (b"content-security-policy", SANDBOX.encode())
_NO_STORE = {b"cache-control": b"no-store"}
_UNCACHED = _OURS | _NO_STORE
_FRAMED = _UNCACHED | {  # pages that the dashboard shows beside its inbox
    b"content-security-policy": _POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'").encode(),
    b"x-frame-options": b"SAMEORIGIN",
}
_SECURE = {b"strict-transport-security": b"max-age=31536000"}  # over https, without subdomains
_REFERRER = (b"referrer-policy", b"no-referrer")


def admit_body(request: Request) -> None:
    """Raise the limit of the body to that of the path: the sender is known."""
    exchange: _Exchange | None = request.scope.get(_EXCHANGE)
    if exchange is not None:
        exchange.admit()


def admit_unverified(request: Request) -> None:
    """Raise the limit of the body to that of the path, for few at the same time: its signature is not verified yet."""
    exchange: _Exchange | None = request.scope.get(_EXCHANGE)
    if exchange is not None:
        exchange.admit_unverified()


@dataclass
class Guards:
    """Guards every request: answers uncaught errors, limits the body, sets security headers.

    A body has at most `STRANGER_BYTES` until its sender is known, and is released with the response.
    """

    app: ASGIApp
    limit_bytes: int
    answer: Answer
    wider: Mapping[str, int]
    forms: tuple[str, ...]
    framed: tuple[str, ...] = ()
    secure: bool = False
    upload_bytes: int = 0  # of paths that end in /attachments
    check: Callable[[Scope], None] = lambda _scope: None  # raises what every request of the tenant is answered with now
    unverified: Slots = field(default_factory=lambda: Slots(LARGE_UNVERIFIED))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit_bytes = self.wider.get(scope["path"], self.limit_bytes)
        limit_bytes *= _FORM_GROWTH if scope["path"].startswith(self.forms) else 1
        if scope["path"].endswith("/attachments"):
            limit_bytes = self.upload_bytes or limit_bytes
        ours = _OURS if scope["path"].startswith("/static/") else _UNCACHED
        if self.framed and scope["path"].startswith(self.framed):
            ours = _FRAMED
        headers = {**ours, **(_SECURE if self.secure else {})}
        declared: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        length = int(declared[:20]) if declared.isdigit() else 0
        exchange = _Exchange(receive, send, limit_bytes, length, headers, self.unverified)
        scope[_EXCHANGE] = exchange
        try:
            try:
                self.check(scope)
                await self.app(scope, exchange.receive, exchange.send)
            except TooLarge:
                if not exchange.over:
                    raise
            if exchange.over and not exchange.begun:
                raise _too_large(exchange.limit_bytes, exchange.full_bytes)
        except ClientDisconnect:
            return  # no client is left to respond to
        except Exception as error:
            if exchange.begun:
                raise
            await self.answer(Request(scope, receive), error)(scope, receive, exchange.answer)
        finally:
            exchange.held.close()
            del scope[_EXCHANGE]
            scope.get("state", {}).clear()


class _Exchange:
    """One request and its response: counts the body, adds headers, stops the response after too large a body."""

    def __init__(
        self,
        receive: Receive,
        send: Send,
        full_bytes: int,
        declared_bytes: int,
        ours: Mapping[bytes, bytes],
        unverified: Slots,
    ) -> None:
        self._receive: Callable[[], Awaitable[Message]] = receive
        self._send = send
        self._ours = ours
        self._declared_bytes = declared_bytes
        self.full_bytes = full_bytes
        self._unverified = unverified
        self._is_unverified = False
        self._read_bytes = 0
        self.limit_bytes = min(full_bytes, STRANGER_BYTES)
        self.over = self.begun = False
        self.held = ExitStack()

    def admit(self) -> None:
        """Raise the limit to that of the path."""
        self.limit_bytes = self.full_bytes

    def admit_unverified(self) -> None:
        """Raise the limit to that of the path, for as many large bodies as there are slots."""
        self._is_unverified = True
        self.admit()

    async def receive(self) -> Message:
        """Return the next part; raises `TooLarge` over the limit."""
        if max(self._read_bytes, self._declared_bytes) > self.limit_bytes:
            self._refuse()
        self._reserve(self._declared_bytes)
        message = await self._receive()
        self._read_bytes += len(message.get("body", b""))
        if self._read_bytes > self.limit_bytes:
            self._refuse()
        self._reserve(self._read_bytes)
        return message

    def _refuse(self) -> None:
        self.over = True
        raise _too_large(self.limit_bytes, self.full_bytes)

    def _reserve(self, size: int) -> None:
        """Hold a slot from the first byte beyond a stranger's; raises `TooManyRequests` without a free one."""
        if not self._is_unverified or size <= STRANGER_BYTES:
            return
        self._is_unverified = False
        if not self.held.enter_context(self._unverified.take(("",))):
            raise TooManyRequests(
                f"{LARGE_UNVERIFIED} large signed messages are being verified. Send it again in {_RETRY_AFTER_S} s.",
                retry_after_s=_RETRY_AFTER_S,
            )

    async def send(self, message: Message) -> None:
        """Send a part, unless the body was too large: then the app's response is dropped."""
        if self.begun or not self.over:
            await self.answer(message)

    async def answer(self, message: Message) -> None:
        self.begun = True
        if message["type"] == "http.response.start":
            uncached = _NO_STORE if message["status"] >= HTTPStatus.BAD_REQUEST else {}
            headers = message["headers"]
            ours = {**self._ours, **uncached}
            headers = [*headers]
            if _SANDBOXED in headers:
                ours = {**ours, **dict([_SANDBOXED])}
            kept = [header for header in headers if header[0] not in ours]
            if not any(name == _REFERRER[0] for name, _ in kept):
                kept.append(_REFERRER)
            message["headers"] = [*kept, *ours.items()]
        await self._send(message)


def _too_large(limit_bytes: int, full_bytes: int) -> TooLarge:
    if limit_bytes < full_bytes:
        return TooLarge(
            f"The body is over {limit_bytes} bytes, the limit without a sign-in. Send less, or sign in first.",
            limit_bytes=limit_bytes,
        )
    return TooLarge(f"The body is over {limit_bytes} bytes. Send less.", limit_bytes=limit_bytes)


def is_closing(state: State) -> bool:
    """Return whether the process of an app has begun to stop."""
    closing: Event | None = getattr(state, "closing", None)
    return closing is not None and closing.is_set()


class Draining:
    """Closes connections behind their answers once the process has begun to stop, so that none is cut in a request."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def close_behind(message: Message) -> None:
            if message["type"] == "http.response.start" and is_closing(self._state):
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, close_behind if scope["type"] == "http" else send)
