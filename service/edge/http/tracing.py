"""The id and the trace that a caller gives a request, on each log line of that request."""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")
"""W3C Trace Context, section 3.2.2; the all-zero ids and the version ff are invalid."""


class Traced:
    """Middleware that binds `request_id`, `trace_id` and `span_id` to log lines, and sends the request id back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ids = read_ids(scope["headers"]) if scope["type"] == "http" else {}
        if not ids:
            await self._app(scope, receive, send)
            return

        async def send_back(message: Message) -> None:
            if message["type"] == "http.response.start" and "request_id" in ids:
                headers = [*message.get("headers", ())]
                if all(name.lower() != b"x-request-id" for name, _ in headers):  # the protocol of agents has its own
                    message = {**message, "headers": [*headers, (b"x-request-id", ids["request_id"].encode())]}
            await send(message)

        with bound_contextvars(**ids):
            await self._app(scope, receive, send_back)


def read_ids(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the ids of well-formed headers that were sent once; others are ignored."""
    sent: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name in (b"x-request-id", b"traceparent"):
            sent.setdefault(name, []).append(value)
    ids = {}
    request_ids, traces = sent.get(b"x-request-id", []), sent.get(b"traceparent", [])
    if len(request_ids) == 1 and _REQUEST_ID.fullmatch(request_ids[0]):
        ids["request_id"] = request_ids[0].decode()
    if len(traces) == 1 and (match := _TRACEPARENT.fullmatch(traces[0])):
        ids.update(trace_id=match[1].decode(), span_id=match[2].decode())
    return ids
