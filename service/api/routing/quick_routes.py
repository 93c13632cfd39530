"""Frequent routes without FastAPI's dependency solver, which costs as much as a decision (docs/performance.md).

FastAPI still documents these routes; `QuickRouter` matches them first. Their parameters are limited to the parts of
this process, the caller, the Idempotency-Key, path ids, one JSON body, and the response headers.
"""

from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from sayso.errors import InvalidInput
from service.api.routing.dependencies import (
    caller_of,
    key_of,
    person_of,
    person_token_of,
    read_key,
    read_person_token,
    wiring_of,
)
from service.api.routing.routes import Respond, SignedInRoute, check_query, identify, read_json
from service.auth.credentials import Principal, require_person
from service.http.bodies import misfit

_MANY = 1_000  # the largest number of faults to list; more would take longer than the request itself
Provide = Callable[[Request, Principal], Any]


_PROVIDED: dict[Any, Provide] = {
    wiring_of: lambda request, _: request.state.wiring,
    caller_of: lambda _, caller: caller,
    person_of: lambda _, caller: require_person(caller),
    key_of: lambda request, _: read_key(request),
    person_token_of: lambda request, _: read_person_token(request),
}


class QuickRoute(SignedInRoute):
    """A route that needs a credential and returns its model as JSON, without FastAPI's solver."""

    def get_route_handler(self) -> Respond:
        """Return a function that serves a request. Raises `TypeError` for an unsupported parameter."""
        endpoint: Any = self.endpoint
        hints = get_type_hints(endpoint, include_extras=True)
        status = self.status_code or 200
        provided = {one.name or "": _PROVIDED[one.call] for one in self.dependant.dependencies}
        paths = {one.name: TypeAdapter(hints[one.name]) for one in self.dependant.path_params}
        bodies = {one.name: TypeAdapter(hints[one.name]) for one in self.dependant.body_params}
        headers = self.dependant.response_param_name
        if hints.keys() - provided.keys() - paths.keys() - bodies.keys() - {headers, "return"} or len(bodies) != 1:
            raise TypeError(f"{endpoint.__name__} has a parameter that a quick route cannot provide.")
        ((name, body),) = bodies.items()

        async def respond(request: Request) -> Response:
            caller = await identify(request)
            check_query(request, frozenset())
            arguments = {name: provide(request, caller) for name, provide in provided.items()}
            arguments |= {path: _fit(paths[path], request.path_params[path], "path", path) for path in paths}
            arguments[name] = _fit(body, await read_json(request), "body")
            if headers is None:
                view: BaseModel = await endpoint(**arguments)
                return Response(view.model_dump_json(), status, media_type="application/json")
            answer = arguments[headers] = Response(status_code=status, media_type="application/json")
            view = await endpoint(**arguments)
            answer.body = view.model_dump_json().encode()
            answer.headers["content-length"] = str(len(answer.body))
            return answer

        return respond


class QuickRouter:
    """Middleware that serves quick routes and passes all other requests to FastAPI. Errors propagate."""

    def __init__(self, app: ASGIApp, prefix: str, routers: Iterable[APIRouter]) -> None:
        self._app = app
        self._prefix = prefix
        self._quick = [
            (method, compile_path(prefix + route.path)[0], route.get_route_handler())
            for router in routers
            for route in router.routes
            if isinstance(route, QuickRoute)
            for method in route.methods or ()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(self._prefix) and not scope.get("root_path"):
            for method, path, respond in self._quick:
                if scope["method"] == method and (found := path.match(scope["path"])):
                    scope["path_params"] = found.groupdict()
                    response = await respond(Request(scope, receive, send))
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def _fit(kind: TypeAdapter[Any], value: Any, *place: str) -> Any:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        if error.error_count() > _MANY:
            summary = f"The body has {error.error_count()} faults, too many to list."
            raise InvalidInput(f"{summary} Compare it with /api/openapi.json.") from None
        faults = error.errors(include_url=False, include_input=False)
        raise misfit([{**fault, "loc": (*place, *fault["loc"])} for fault in faults]) from None
