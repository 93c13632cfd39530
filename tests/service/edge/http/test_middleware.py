"""The body of a request is bounded before its sender is known, and released with the response."""

import asyncio
import gc
import tracemalloc
from collections import deque
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sayso.errors import TooManyRequests
from service.channels.kinds import KINDS
from service.core.concurrency import Slots
from service.core.settings import Settings
from service.edge.http.middleware import STRANGER_BYTES, Guards, admit_unverified
from service.features.pages import PAGES
from tests.service.edge.web.sites import settings_for, visit
from tests.service.servers import served

_PART = b"x" * 4_096
_HELD = b"x" * (STRANGER_BYTES + 1)
_REFUSALS = 300


def list_places(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield the method and path of every route that may have a body."""
    mounted = [(one.path, one.app) for one in app.routes if isinstance(one, Mount) and isinstance(one.app, FastAPI)]
    for prefix, documented in (("", app), *mounted):
        for path, methods in documented.openapi()["paths"].items():
            yield from ((method.upper(), prefix + _fill(path)) for method in methods if method != "get")
    for router in (*PAGES, *(kind.router for kind in KINDS.values() if kind.router is not None)):
        for route in router.routes:
            if isinstance(route, Route):
                yield from ((method, _fill(route.path)) for method in (route.methods or set()) - {"GET", "HEAD"})


def _fill(path: str) -> str:
    return path.replace("{", "").replace("}", "").replace(":path", "")


async def send(
    app: ASGIApp, method: str, path: str, kind: str, parts: Sequence[bytes], last: asyncio.Event | None = None
) -> tuple[int, int]:
    """Send a body without a credential, in parts; return the status and how much of it was read.

    The last part waits for its event.
    """
    rest, read, sent = deque(parts), 0, []

    async def receive() -> Message:
        nonlocal read
        if len(rest) == 1 and last is not None:
            await last.wait()
        body = rest.popleft() if rest else b""
        read += len(body)
        return {"type": "http.request", "body": body, "more_body": bool(rest)}

    async def answer(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1:8321"),
            (b"content-type", kind.encode()),
            (b"sec-fetch-site", b"same-origin"),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8321),
        "state": {},
    }
    await app(scope, receive, answer)
    return sent[0]["status"], read


async def test_no_route_reads_a_long_body_of_a_stranger(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        places = [*list_places(guest.app)]
        assert {("POST", "/sign-in"), ("POST", "/api/v1/suspensions"), ("POST", "/api/aap/v1/requests")} <= {*places}
        for method, path in places:
            for kind in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
                status, read = await send(guest.app, method, path, kind, [_PART] * 40)
                assert (status >= 300, read <= STRANGER_BYTES + len(_PART)) == (True, True), (method, path, status)


async def test_a_declared_length_over_the_limit_is_refused_unread(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        form = {"name": "anna", "password": "x" * STRANGER_BYTES}
        answer = await guest.client.post("/sign-in", data=form, headers={"Sec-Fetch-Site": "same-origin"})
        assert (answer.status_code, "16384 bytes, the limit without a sign-in" in answer.text) == (413, True)


async def test_few_large_bodies_are_verified_at_the_same_time() -> None:
    """A slow stranger holds one slot; the second gets a time to retry, and small messages always pass."""
    arrived, ending = asyncio.Event(), asyncio.Event()

    async def endpoint(request: Request) -> Response:
        admit_unverified(request)
        async for part in request.stream():
            if part == _HELD:
                arrived.set()
        return Response(status_code=204)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (await endpoint(Request(scope, receive)))(scope, receive, send)

    guarded = Guards(app, 1_000_000, _answer, {}, (), unverified=Slots(1))

    async def ask(*parts: bytes, last: asyncio.Event | None = None) -> int:
        status, _ = await send(guarded, "POST", "/signed", "text/plain", parts, last)
        return status

    slow = asyncio.create_task(ask(_HELD, b"", last=ending))
    await arrived.wait()
    assert (await ask(_HELD, _HELD), await ask(b"x")) == (429, 204)
    ending.set()
    assert await slow == 204
    assert await ask(_HELD, _HELD) == 204


def _answer(_request: Request, error: Exception) -> Response:
    return Response(status_code=429 if isinstance(error, TooManyRequests) else 413)


def test_refused_bodies_are_released_without_the_collector(clean_store_url: str, tmp_path: Path) -> None:
    """A page that shows a form again refers to its request, and the request to the page: a circle with the form."""
    kept = urlencode({"answer": "deny", "reason": "x" * 11_000})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    with served(settings_for(clean_store_url, tmp_path)) as url:
        client = HTTPConnection(urlsplit(url).netloc)
        gc.collect()
        gc.disable()
        try:
            for number in range(_REFUSALS + 20):
                if number == 20:
                    tracemalloc.start()
                client.request("POST", "/items/sus_1/i1", kept, headers)
                answer = client.getresponse()
                answer.read()
                assert answer.status == 401
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
            client.close()
    assert held_bytes < _REFUSALS * len(kept) / 2
