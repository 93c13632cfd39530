"""Call the few routes that everybody waits for without FastAPI's own solver, which costs as much as the decision.

FastAPI documents them, and would find them too: `QuickDoor` finds them first. Their parameters are of few kinds, known
when the route is made: parts of this process, who is calling, the Idempotency-Key, ids in the path, one JSON body, and
the answer's headers.
"""

from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from sayso.errors import InvalidInput
from service.api.routing.dependencies import caller_of, key_of, person_of, read_key, wiring_of
from service.api.routing.routes import SignedInRoute, Take, check_query, identify, read_json
from service.auth.credentials import Principal, require_person
from service.http.bodies import misfit

_MANY = 1_000
"""Faults that are written down; more than these take longer than the whole request."""

Give = Callable[[Request, Principal], Any]


def _give_person(_request: Request, caller: Principal) -> Principal:
    require_person(caller)
    return caller


_GIVEN: dict[Any, Give] = {
    wiring_of: lambda request, _: request.state.wiring,
    caller_of: lambda _, caller: caller,
    person_of: _give_person,
    key_of: lambda request, _: read_key(request),
}


class QuickRoute(SignedInRoute):
    """A route for whoever has a credential, called directly; it answers with its model as JSON."""

    def get_route_handler(self) -> Take:
        """Return what takes a request; raises `TypeError` for an endpoint with a parameter of any other kind."""
        endpoint: Any = self.endpoint
        hints = get_type_hints(endpoint, include_extras=True)
        status = self.status_code or 200
        given = {one.name or "": _GIVEN[one.call] for one in self.dependant.dependencies}
        paths = {one.name: TypeAdapter(hints[one.name]) for one in self.dependant.path_params}
        bodies = {one.name: TypeAdapter(hints[one.name]) for one in self.dependant.body_params}
        headers = self.dependant.response_param_name
        if hints.keys() - given.keys() - paths.keys() - bodies.keys() - {headers, "return"} or len(bodies) != 1:
            raise TypeError(f"{endpoint.__name__} has a parameter that a quick route cannot give.")
        ((name, body),) = bodies.items()

        async def take(request: Request) -> Response:
            caller = await identify(request)
            check_query(request, frozenset())
            arguments = {place: give(request, caller) for place, give in given.items()}
            arguments |= {place: _fit(paths[place], request.path_params[place], "path", place) for place in paths}
            arguments[name] = _fit(body, await read_json(request), "body")
            if headers is None:
                view: BaseModel = await endpoint(**arguments)
                return Response(view.model_dump_json(), status, media_type="application/json")
            answer = arguments[headers] = Response(status_code=status, media_type="application/json")
            view = await endpoint(**arguments)
            answer.body = view.model_dump_json().encode()
            answer.headers["content-length"] = str(len(answer.body))
            return answer

        return take


class QuickDoor:
    """Take what is for a quick route right here; all else, another method included, goes on to FastAPI's own search.

    Errors rise to whoever answers them for the whole app.
    """

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
        """Serve one request."""
        if scope["type"] == "http" and scope["path"].startswith(self._prefix) and not scope.get("root_path"):
            for method, path, take in self._quick:
                if scope["method"] == method and (found := path.match(scope["path"])):
                    scope["path_params"] = found.groupdict()
                    response = await take(Request(scope, receive, send))
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def _fit(kind: TypeAdapter[Any], value: Any, *place: str) -> Any:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        if error.error_count() > _MANY:
            words = f"This does not fit in {error.error_count()} places, which are too many to list."
            raise InvalidInput(f"{words} Compare it with /api/openapi.json.") from None
        faults = error.errors(include_url=False, include_input=False)
        raise misfit([{**fault, "loc": (*place, *fault["loc"])} for fault in faults]) from None
