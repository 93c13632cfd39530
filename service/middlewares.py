"""Guard every request and every answer: security headers, a limit on bodies, and no error without an answer.

Plain ASGI around the whole app, so that nothing, neither a broken page nor a refused path, gets past them.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.telemetry import TelemetryConfig
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sayso.errors import TooLarge

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI's own, which nothing here is written for, would ask the environment at every request whether it is wanted."""

Answer = Callable[[Request, Exception], Response]
"""How an error is answered."""

_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
_OURS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
_FRESH = _OURS | {b"cache-control": b"no-store"}
_REFERRER = (b"referrer-policy", b"no-referrer")


class SecureHeaders:
    """Put the security headers on every answer, and keep all but static files out of caches."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        static = scope["path"].startswith("/static/")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                fresh = not static or message["status"] >= HTTPStatus.BAD_REQUEST
                message["headers"] = _guard(message["headers"], fresh=fresh)
            await send(message)

        await self._app(scope, receive, send_guarded)


def _guard(headers: Iterable[tuple[bytes, bytes]], *, fresh: bool) -> list[tuple[bytes, bytes]]:
    """Return an answer's headers with ours; what it says of referrers itself stands."""
    ours = _FRESH if fresh else _OURS
    kept = [header for header in headers if header[0] not in ours]
    if not any(name == _REFERRER[0] for name, _ in kept):
        kept.append(_REFERRER)
    return [*kept, *ours.items()]


class AnsweredErrors:
    """Answer whatever nobody caught. An answer that has begun can only be broken off, and the server does that."""

    def __init__(self, app: ASGIApp, answer: Answer) -> None:
        self._app = app
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_noted(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except ClientDisconnect:
            return  # nobody is there to be answered
        except Exception as error:
            if begun:
                raise
            response = self._answer(Request(scope, receive), error)
            await response(scope, receive, send)


class LimitedBodies:
    """Refuse bodies over the limit: by what they say before a byte is read, and by what comes in whatever they say."""

    def __init__(self, app: ASGIApp, limit_bytes: int, answer: Answer, wider: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._wider = wider or {}
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit_bytes = self._wider.get(scope["path"], self._limit_bytes)
        counted = _CountedBody(receive, send, limit_bytes)
        if not _says_more(scope, limit_bytes):
            try:
                await self._app(scope, counted.receive, counted.send)
            except TooLarge:
                if not counted.over:
                    raise
        else:
            counted.over = True
        if counted.over and not counted.begun:
            response = self._answer(Request(scope, receive), _too_large(limit_bytes))
            await response(scope, receive, send)


class _CountedBody:
    """What comes in, counted; what goes out, held back once that was too much."""

    def __init__(self, receive: Receive, send: Send, limit_bytes: int) -> None:
        self._receive: Callable[[], Awaitable[Message]] = receive
        self._send = send
        self._left = limit_bytes
        self._limit_bytes = limit_bytes
        self.over = False
        self.begun = False

    async def receive(self) -> Message:
        """Return the next part; raises `TooLarge` at the byte too many."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.over = True
            raise _too_large(self._limit_bytes)
        return message

    async def send(self, message: Message) -> None:
        """Send a part, unless the answer is another one by now: some caller of ours took the error for its own."""
        if self.over and not self.begun:
            return
        self.begun = True
        await self._send(message)


def _says_more(scope: Scope, limit_bytes: int) -> bool:
    said: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return said.isdigit() and int(said[:20]) > limit_bytes


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"The body is over {limit_bytes} bytes. Send less.", limit_bytes=limit_bytes)
