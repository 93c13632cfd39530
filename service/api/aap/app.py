"""Put the Agent Approval Protocol together: an app of its own under `/api/aap`, with its own errors."""

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders, State
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sayso.errors import SaysoError
from service.api.aap import instances, requests
from service.api.aap.documents import PREFIX, document
from service.api.aap.problems import REQUEST_ID, render_refusal, request_id_of
from service.http.middleware import NO_TELEMETRY
from service.http.openapi import name_methods

_ABOUT = (
    "The Agent Approval Protocol, version 1: an agent's adapter asks before a call runs, waits or is told by a signed "
    "webhook, spends the approval once, and says what came of the call. A request is an item of the desk like any "
    "other: the rules judge it and people decide it, with approve or deny. Members that are unknown, null or there "
    "twice are refused. Numbers are kept as they were written."
)


def create_aap(state: State, version: str) -> FastAPI:
    """Return the protocol's app, which shares the parts of this process with the app around it."""
    app = FastAPI(
        title="Sayso: Agent Approval Protocol",
        version=version,
        description=_ABOUT,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        exception_handlers=dict.fromkeys((SaysoError, RequestValidationError, HTTPException), _answer),
    )
    app.state = state
    app.openapi = document(app)  # type: ignore[method-assign]
    app.include_router(instances.router)
    app.include_router(requests.router)
    return app


async def _answer(request: Request, error: Exception) -> Response:
    return render_refusal(request, name_methods(request, error))


class RequestIds:
    """Put the id of the exchange on every answer of the protocol, whoever gives it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not speaks_aap(scope["path"]):
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(Request(scope))

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        await self._app(scope, receive, send_marked)


def speaks_aap(path: str) -> bool:
    """Say whether a path belongs to the protocol."""
    return f"{path}/".startswith(f"{PREFIX}/")
