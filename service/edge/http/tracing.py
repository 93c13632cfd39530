"""The id and the trace that a caller gives a request, on each log line of that request, and the line of its access."""

import re
from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from sayso.core.clock import monotonic_ms
from service.core.caller_ids import NO_IDS, CallerIds, current_ids

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")
"""W3C Trace Context, section 3.2.2; the all-zero ids and the version ff are invalid."""

UNLOGGED = ("/healthz", "/readyz", "/metrics")
log = structlog.get_logger()


class Traced:
    """Middleware that binds a request's ids to its log lines and changes, and logs its access.

    It sends the request id back.
    """

    def __init__(self, app: ASGIApp, *, access_log: bool = False, prefix: str = "") -> None:
        self._app, self._access_log, self._prefix = app, access_log, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ids = read_ids(scope["headers"]) if scope["type"] == "http" else NO_IDS
        logged = self._access_log and scope["type"] == "http" and scope["path"] not in UNLOGGED
        if ids is NO_IDS and not logged:
            await self._app(scope, receive, send)
            return
        began_ms, status, caller = monotonic_ms(), 0, {}

        async def send_back(message: Message) -> None:
            nonlocal status, caller
            if message["type"] == "http.response.start":
                status, caller = message["status"], _describe_caller(scope) if logged else {}
                headers = [*message.get("headers", ())]
                if ids.request_id and all(name.lower() != b"x-request-id" for name, _ in headers):  # agents' protocol
                    message = {**message, "headers": [*headers, (b"x-request-id", ids.request_id.encode())]}
            await send(message)

        token = current_ids.set(ids)
        try:
            with bound_contextvars(**_describe_ids(ids)):
                try:
                    await self._app(scope, receive, send_back)
                finally:
                    if logged:
                        ms, route = round(monotonic_ms() - began_ms, 1), find_template(scope, self._prefix)
                        log.info("request", method=scope["method"], route=route, status=status, ms=ms, **caller)
        finally:
            current_ids.reset(token)


def find_template(scope: Scope, prefix: str = "") -> str | None:
    """Return the template of the route that served a request, with nothing that the caller chose, or None.

    `prefix` is that of the router which includes all others, if the path begins with it.
    """
    template: str | None = scope.get("template")  # of a quick route, which the router has not seen
    route, root = getattr(scope.get("route"), "path", ""), scope.get("root_path", "")
    if template is None and route and scope["path"].startswith(f"{prefix}/"):
        return f"{prefix}{route}"  # a route does not know the prefix of the router that includes its own
    return template or f"{root}{route}" or None


def _describe_caller(scope: Scope) -> dict[str, str]:
    principal = scope.get("state", {}).get("principal")
    return {} if principal is None else {"by": principal.kind.value, "by_id": principal.key_id or principal.name}


def _describe_ids(ids: CallerIds) -> dict[str, str]:
    named = {"request_id": ids.request_id} if ids.request_id else {}
    if ids.traceparent:
        _, named["trace_id"], named["span_id"], _ = ids.traceparent.split("-")
    return named


def read_ids(headers: Iterable[tuple[bytes, bytes]]) -> CallerIds:
    """Return the ids of well-formed headers that were sent once; others are ignored."""
    sent: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name in (b"x-request-id", b"traceparent"):
            sent.setdefault(name, []).append(value)
    if not sent:
        return NO_IDS
    request_id, trace = sent.get(b"x-request-id", []), sent.get(b"traceparent", [])
    known = request_id[0].decode() if len(request_id) == 1 and _REQUEST_ID.fullmatch(request_id[0]) else ""
    place = trace[0].decode() if len(trace) == 1 and _TRACEPARENT.fullmatch(trace[0]) else ""
    return CallerIds(known, place) if known or place else NO_IDS
