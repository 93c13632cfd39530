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

_FORM_GROWTH = 8
"""How much longer JSON may become in a browser's form: it is indented there, and `\n` is sent as `%0D%0A`."""

Answer = Callable[[Request, Exception], Response]
"""How an error is answered."""

_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
_OURS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
_FRESH = _OURS | {b"cache-control": b"no-store"}
_SECURE = {b"strict-transport-security": b"max-age=31536000"}
"""For a service whose address is https. Names below its host are not ours, so nothing is said about them."""
_REFERRER = (b"referrer-policy", b"no-referrer")


class Guards:
    """Serve every request under guard: an answer to whatever nobody caught, no body over the limit, security headers.

    An answer that has begun can only be broken off, and the server does that. Static files alone may be kept in caches.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit_bytes: int,
        answer: Answer,
        wider: Mapping[str, int],
        forms: tuple[str, ...],
        secure: bool = False,
    ) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._wider = wider
        self._forms = forms
        self._answer = answer
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit_bytes = self._wider.get(scope["path"], self._limit_bytes)
        limit_bytes *= _FORM_GROWTH if scope["path"].startswith(self._forms) else 1
        exchange = _Exchange(
            receive, send, limit_bytes, static=scope["path"].startswith("/static/"), secure=self._secure
        )
        try:
            await self._serve(scope, exchange)
        except ClientDisconnect:
            return  # nobody is there to be answered
        except Exception as error:
            if exchange.begun:
                raise
            response = self._answer(Request(scope, receive), error)
            await response(scope, receive, exchange.answer)

    async def _serve(self, scope: Scope, exchange: "_Exchange") -> None:
        """Let the app answer; raises `TooLarge` where the body is, whatever the app made of that."""
        if _says_more(scope, exchange.limit_bytes):
            raise _too_large(exchange.limit_bytes)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except TooLarge:
            if not exchange.over:
                raise
        if exchange.over and not exchange.begun:
            raise _too_large(exchange.limit_bytes)


class _Exchange:
    """What comes in, counted; what goes out, with our headers, and held back once too much has come in."""

    def __init__(self, receive: Receive, send: Send, limit_bytes: int, *, static: bool, secure: bool) -> None:
        self._receive: Callable[[], Awaitable[Message]] = receive
        self._send = send
        self._static = static
        self._secure = secure
        self._left = limit_bytes
        self.limit_bytes = limit_bytes
        self.over = False
        self.begun = False

    async def receive(self) -> Message:
        """Return the next part; raises `TooLarge` at the byte too many."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.over = True
            raise _too_large(self.limit_bytes)
        return message

    async def send(self, message: Message) -> None:
        """Send a part, unless the answer is another one by now: some caller of ours took the error for its own."""
        if self.begun or not self.over:
            await self.answer(message)

    async def answer(self, message: Message) -> None:
        """Send a part of the answer that stands."""
        self.begun = True
        if message["type"] == "http.response.start":
            fresh = not self._static or message["status"] >= HTTPStatus.BAD_REQUEST
            message["headers"] = _guard(message["headers"], fresh=fresh, secure=self._secure)
        await self._send(message)


def _guard(headers: Iterable[tuple[bytes, bytes]], *, fresh: bool, secure: bool) -> list[tuple[bytes, bytes]]:
    """Return an answer's headers with ours; what it says of referrers itself stands."""
    ours = {**(_FRESH if fresh else _OURS), **(_SECURE if secure else {})}
    kept = [header for header in headers if header[0] not in ours]
    if not any(name == _REFERRER[0] for name, _ in kept):
        kept.append(_REFERRER)
    return [*kept, *ours.items()]


def _says_more(scope: Scope, limit_bytes: int) -> bool:
    said: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return said.isdigit() and int(said[:20]) > limit_bytes


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"The body is over {limit_bytes} bytes. Send less.", limit_bytes=limit_bytes)
