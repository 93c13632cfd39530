"""Frequent operations ahead of the app's middleware and router, which cost as much as a decision.

FastAPI documents these routes and would give the same answers; `QuickRoutes` comes first. Their parameters are limited
to the request, the parts of this process, the caller, the Idempotency-Key, path ids, `wait`, one JSON body, and the
response headers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from re import Pattern
from typing import Any, NamedTuple, get_type_hints

from fastapi import APIRouter, FastAPI, Request, Response
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from sayso.errors import InvalidInput
from service.core.auth.credentials import Principal, require_person
from service.edge.api.dependencies import (
    caller_of,
    key_of,
    person_of,
    person_token_of,
    read_key,
    read_person_token,
    read_wait,
    wait_of,
    wiring_of,
)
from service.edge.api.routes import Respond, SignedInRoute, check_query, read_json
from service.edge.http.bodies import misfit

_MANY = 1_000  # the largest number of faults to list; more would take longer than the request itself
Provide = Callable[[Request, Principal], Any]
Guard = Callable[[ASGIApp], ASGIApp]


_PROVIDED: dict[Any, Provide] = {
    wiring_of: lambda request, _: request.state.wiring,
    caller_of: lambda _, caller: caller,
    person_of: lambda _, caller: require_person(caller),
    key_of: lambda request, _: read_key(request),
    person_token_of: lambda request, _: read_person_token(request),
    wait_of: lambda request, _: read_wait(request),
}


class Quick(NamedTuple):
    """The ids of operations, the most frequent first, and the routers that hold them."""

    prefix: str
    routers: tuple[APIRouter, ...]
    operations: tuple[str, ...]


class _Field(NamedTuple):
    """A parameter in the path, or the body, and whether it must be sent."""

    name: str
    kind: TypeAdapter[Any]
    place: tuple[str, ...]
    required: bool = True


def serve_quickly(route: SignedInRoute) -> Respond:
    """Return a function that serves a route without FastAPI. Raises `TypeError` for an unsupported parameter."""
    endpoint: Any = route.endpoint
    dependant = route.dependant
    hints = get_type_hints(endpoint, include_extras=True)
    status = route.status_code or 200
    provided = {dependency.name or "": _PROVIDED[dependency.call] for dependency in dependant.dependencies}
    names = frozenset(("wait",) if any(dependency.call is wait_of for dependency in dependant.dependencies) else ())
    paths = [_Field(arg.name, TypeAdapter(hints[arg.name]), ("path", arg.name)) for arg in dependant.path_params]
    bodies = [
        _Field(arg.name, TypeAdapter(hints[arg.name]), ("body",), arg.field_info.is_required())
        for arg in dependant.body_params
    ]
    headers, whole = dependant.response_param_name, dependant.request_param_name
    known = {*provided, *(field.name for field in (*paths, *bodies)), headers, whole, "return"}
    if hints.keys() - known or len(bodies) > 1:
        raise TypeError(f"{endpoint.__name__} has a parameter that a quick route cannot provide.")
    body = bodies[0] if bodies else None

    async def respond(request: Request) -> Response:
        await route.admit(request)
        caller: Principal = request.state.principal
        check_query(request, names)
        sent = await read_json(request, required=body.required) if body is not None else None
        arguments = {name: provide(request, caller) for name, provide in provided.items()}
        values = [(field, request.path_params[field.name]) for field in paths]
        _fit(arguments, [*values, (body, sent)] if body is not None else values)
        if whole is not None:
            arguments[whole] = request
        answer = Response(status_code=status, media_type="application/json")
        if headers is not None:
            arguments[headers] = answer
        view: BaseModel = await endpoint(**arguments)
        answer.body = view.model_dump_json().encode()
        answer.headers["content-length"] = str(len(answer.body))
        return answer

    return respond


class QuickRoutes:
    """An ASGI app that serves some operations and passes all other requests on."""

    def __init__(self, app: FastAPI, rest: ASGIApp, quick: Quick, guard: Guard) -> None:
        self._app, self._rest = app, rest
        self._guarded = guard(self._serve)
        self._routes: dict[str, list[tuple[Pattern[str], str, Respond]]] = defaultdict(list)
        routes = {
            route.operation_id: route
            for router in quick.routers
            for route in router.routes
            if isinstance(route, SignedInRoute)
        }
        for route in map(routes.__getitem__, quick.operations):
            template = quick.prefix + route.path
            for method in route.methods or ():
                self._routes[method].append((compile_path(template)[0], template, serve_quickly(route)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope.get("root_path"):
            for path, template, respond in self._routes.get(scope["method"], ()):
                if (match := path.match(scope["path"])) is not None:
                    scope.update(app=self._app, path_params=match.groupdict(), respond=respond, template=template)
                    await self._guarded(scope, receive, send)
                    return
        await self._rest(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await scope["respond"](Request(scope, receive, send)))(scope, receive, send)


def _fit(arguments: dict[str, Any], values: Iterable[tuple[_Field, Any]]) -> None:
    """Add the values as validated; raises `InvalidInput` with the faults of all of them."""
    faults: list[Any] = []
    for field, value in values:
        try:
            arguments[field.name] = field.kind.validate_python(value)
        except ValidationError as error:
            if error.error_count() > _MANY:
                summary = f"The body has {error.error_count()} faults, too many to list."
                raise InvalidInput(f"{summary} Compare it with /api/openapi.json.") from None
            errors = error.errors(include_url=False, include_input=False)
            faults += [{**fault, "loc": (*field.place, *fault["loc"])} for fault in errors]
    if faults:
        raise misfit(faults)
