"""The Agent Approval Protocol: an app under `/api/aap` with its own errors."""

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders, State
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sayso.errors import SaysoError
from service.edge.api.aap import instances, requests
from service.edge.api.aap.problems import PREFIX, REQUEST_ID, make_document, render_refusal, request_id_of
from service.edge.http.middleware import NO_TELEMETRY
from service.edge.http.openapi import join_routes, name_methods, serve_document

_ABOUT = (
    "The Agent Approval Protocol, version 1. An agent's adapter requests approval of a call, waits or receives a "
    "signed webhook, consumes the approval once, and reports the outcome. A request is an ordinary item: rules "
    "evaluate it, and people approve or deny it. Unknown, null and repeated members are refused. Numbers are returned "
    "as they were sent."
)
_ROUTES = join_routes(instances.router, requests.router)


def create_aap(state: State, version: str) -> FastAPI:
    """Return the protocol's app. It shares the state of the surrounding app."""
    app = FastAPI(
        title="Sayso: Agent Approval Protocol",
        version=version,
        description=_ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=[*_ROUTES],
        telemetry=NO_TELEMETRY,
        exception_handlers=dict.fromkeys((SaysoError, RequestValidationError, HTTPException), _answer),
    )
    app.state = state
    serve_document(app, "/openapi.json", make_document)
    return app


async def _answer(request: Request, error: Exception) -> Response:
    return render_refusal(request, await name_methods(request, error))


class RequestIds:
    """Middleware that adds the request id to every response of the protocol."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_aap_path(scope["path"]):
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(Request(scope))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        await self._app(scope, receive, send_with_id)


def is_aap_path(path: str) -> bool:
    """Return whether a path belongs to the protocol."""
    return f"{path}/".startswith(f"{PREFIX}/")
