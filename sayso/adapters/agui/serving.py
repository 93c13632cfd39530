"""The proxy as an ASGI app, and its server."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sayso.adapters.agui.proxies import AgUiOptions, AgUiProxy
from sayso.adapters.agui.streams import write_event
from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject, parse_json
from sayso.errors import InvalidInput, TooLarge

MAX_INPUT_BYTES = 4_000_000
_SLOWEST_INPUT_S = 30.0
_MOST_REQUESTS = 500
_TIMEOUT = httpx.Timeout(30.0, read=None)
_PASSED = ("authorization", "accept-language")


def make_app(
    url: str,
    options: AgUiOptions | None = None,
    *,
    desk: AsyncClient | None = None,
    headers: Mapping[str, str] | None = None,
) -> Starlette:
    """Return an ASGI app before the agent at `url`. `headers` are sent to it; others of the client's are not.

    Without `desk`, SAYSO_URL and SAYSO_KEY name it. The client's `Authorization` is passed on unless `headers` has one.
    """
    agent = httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False)
    proxy = AgUiProxy(url, desk or AsyncClient(), agent, options or AgUiOptions())
    own = httpx.Headers(dict(headers or {}), encoding="utf-8")

    async def run(request: Request) -> Response:
        try:
            run_input = await _read_input(request)
        except InvalidInput as error:
            return JSONResponse({"message": error.message}, 413 if isinstance(error, TooLarge) else 422)
        passed = {name: value for name in _PASSED if (value := request.headers.get(name)) is not None}
        fixed = {"accept": "text/event-stream", "content-type": "application/json"}
        sent = httpx.Headers({**passed, **fixed}, encoding="latin-1")
        sent.update(own)
        events = proxy.run(run_input, sent)
        return StreamingResponse(_write(events), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})

    return Starlette(routes=[Route("/", run, methods=["POST"])])


async def _write(events: AsyncIterator[JsonObject]) -> AsyncIterator[bytes]:
    async for event in events:
        yield write_event(event)


async def _read_input(request: Request) -> JsonObject:
    raw = bytearray()
    try:
        async with asyncio.timeout(_SLOWEST_INPUT_S):
            async for chunk in request.stream():
                raw += chunk
                if len(raw) > MAX_INPUT_BYTES:
                    raise TooLarge(f"The input has more than {MAX_INPUT_BYTES} bytes. Send fewer messages.")
    except (ClientDisconnect, TimeoutError) as error:
        raise InvalidInput(f"The input did not arrive within {_SLOWEST_INPUT_S:.0f} s. Send it again.") from error
    run_input = parse_json(bytes(raw))
    if not isinstance(run_input, dict):
        raise InvalidInput("The input is no JSON object. Send a RunAgentInput of AG-UI 1.0.")
    return run_input


def serve(url: str, options: AgUiOptions, headers: Mapping[str, str], host: str, port: int) -> None:
    """Serve the proxy until the process is stopped."""

    async def run() -> None:
        app = make_app(url, options, headers=headers)
        config = uvicorn.Config(app, host=host, port=port, log_level="warning", limit_concurrency=_MOST_REQUESTS)
        await uvicorn.Server(config).serve()

    asyncio.run(run())
