"""ASGI guards around the whole app: security headers, body limits, and a response to every error."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.telemetry import TelemetryConfig
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sayso.errors import TooLarge

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}  # it reads the environment

_FORM_GROWTH = 8  # size factor of JSON in a browser's form: it is indented, and `\n` is sent as `%0D%0A`
Answer = Callable[[Request, Exception], Response]  # returns the response to an error
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
_OURS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
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


@dataclass
class Guards:
    """Guards every request: answers uncaught errors, limits the body, sets security headers."""

    app: ASGIApp
    limit_bytes: int
    answer: Answer
    wider: Mapping[str, int]
    forms: tuple[str, ...]
    framed: tuple[str, ...] = ()
    secure: bool = False
    upload_bytes: int = 0  # of paths that end in /attachments

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
        exchange = _Exchange(receive, send, limit_bytes, {**ours, **(_SECURE if self.secure else {})})
        try:
            await self._serve(scope, exchange)
        except ClientDisconnect:
            return  # no client is left to respond to
        except Exception as error:
            if exchange.begun:
                raise
            response = self.answer(Request(scope, receive), error)
            await response(scope, receive, exchange.answer)

    async def _serve(self, scope: Scope, exchange: "_Exchange") -> None:
        """Run the app; raises `TooLarge` for a body over the limit, even if the app caught that error."""
        if _exceeds(scope, exchange.limit_bytes):
            raise _too_large(exchange.limit_bytes)
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except TooLarge:
            if not exchange.over:
                raise
        if exchange.over and not exchange.begun:
            raise _too_large(exchange.limit_bytes)


class _Exchange:
    """One request and its response: counts the body, adds headers, stops the response after too large a body."""

    def __init__(self, receive: Receive, send: Send, limit_bytes: int, ours: Mapping[bytes, bytes]) -> None:
        self._receive: Callable[[], Awaitable[Message]] = receive
        self._send = send
        self._ours = ours
        self.limit_bytes = self._rest_bytes = limit_bytes
        self.over = self.begun = False

    async def receive(self) -> Message:
        """Return the next part; raises `TooLarge` over the limit."""
        message = await self._receive()
        self._rest_bytes -= len(message.get("body", b""))
        if self._rest_bytes < 0:
            self.over = True
            raise _too_large(self.limit_bytes)
        return message

    async def send(self, message: Message) -> None:
        """Send a part, unless the body was too large: then the app's response is dropped."""
        if self.begun or not self.over:
            await self.answer(message)

    async def answer(self, message: Message) -> None:
        self.begun = True
        if message["type"] == "http.response.start":
            uncached = _NO_STORE if message["status"] >= HTTPStatus.BAD_REQUEST else {}
            message["headers"] = _guard(message["headers"], {**self._ours, **uncached})
        await self._send(message)


def _guard(headers: Iterable[tuple[bytes, bytes]], ours: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    headers = [*headers]
    if _SANDBOXED in headers:
        ours = {**ours, **dict([_SANDBOXED])}
    kept = [header for header in headers if header[0] not in ours]
    if not any(name == _REFERRER[0] for name, _ in kept):
        kept.append(_REFERRER)
    return [*kept, *ours.items()]


def _exceeds(scope: Scope, limit_bytes: int) -> bool:
    declared: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return declared.isdigit() and int(declared[:20]) > limit_bytes


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"The body is over {limit_bytes} bytes. Send less.", limit_bytes=limit_bytes)
