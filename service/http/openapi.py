"""Describe the API: problem responses, examples, and the OpenAPI file that is made of it all."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Route, compile_path

MEDIA_TYPE = "application/problem+json"
"""How problems are sent."""

LICENSE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}

Responses = dict[int | str, dict[str, Any]]

_REF = {"$ref": "#/components/schemas/Problem"}
_ALWAYS = (413, 422, 500, 503)
_MEANINGS = {
    400: "The JSON, or a header, cannot be read",
    401: "No credential, or one that does not hold",
    403: "Not for this credential",
    404: "Nothing there for this credential",
    409: "The record has moved on; nothing was changed",
    413: "The body is over a limit",
    415: "The body is not application/json",
    421: "The service is not known under this host",
    422: "What came in does not fit",
    429: "Too many, or too fast; `Retry-After` says when to come back",
    500: "Something broke on our side",
    503: "The store cannot be reached; `Retry-After` says when to come back",
}

_TAGS = [
    {"name": "sessions", "description": "Sign a person in, for scripts; browsers use the pages."},
    {"name": "agents", "description": "The agents that workers have registered."},
    {"name": "runs", "description": "Start runs, follow them, cancel them."},
    {"name": "suspensions", "description": "What waits for people, and what they decided."},
    {"name": "freezes", "description": "Stop a tool, an agent or everything, and let it go on."},
    {"name": "reviewers", "description": "People, for admins."},
    {"name": "keys", "description": "API keys of agents, for admins."},
    {"name": "hooks", "description": "Decisions by signed webhook."},
    {"name": "health", "description": "For whoever watches the service."},
]


class Fault(BaseModel):
    """One thing that does not fit."""

    path: str = Field(examples=["$.action"])
    message: str = Field(examples=["is missing; add it"])


class ProblemDocument(BaseModel):
    """What every error looks like; facts of the error stand beside these members."""

    model_config = ConfigDict(title="Problem", extra="allow")

    type: str = Field(examples=["/problems/already-decided"])
    title: str = Field(examples=["Already decided"])
    status: int = Field(examples=[409])
    detail: str = Field(description="What happened, and what to do.")
    errors: list[Fault] | None = Field(default=None, description="Every fault, where there may be several.")


def problems(*statuses: int) -> Responses:
    """Return the problem responses of a route: those named, and those that any route may give."""
    return {
        status: {"description": _MEANINGS[status], "content": {MEDIA_TYPE: {"schema": _REF}}}
        for status in sorted({*statuses, *_ALWAYS})
    }


READS = problems(401, 404, 409)
"""The problems of reading one thing: 409 is a record that cannot be read."""

WAITS = problems(401, 404, 429)
"""The problems of waiting for one thing."""

ASKS = problems(400, 401, 403, 404, 409, 415, 429)
"""The problems of asking for something new."""

WRITES = problems(400, 401, 403, 404, 409, 415)
"""The problems of changing one."""


def document(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """Return what makes the OpenAPI file of the app, once."""

    def make() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _make(app)
        return app.openapi_schema

    return make


def name_methods(request: Request, error: Exception, unlisted: Iterable[Route] = ()) -> Exception:
    """Return the refusal of a method with all that the path takes; the router names those of one route alone.

    Routes that the OpenAPI file does not list are given as `unlisted`.
    """
    if not isinstance(error, HTTPException) or error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return error
    place, paths = request.url.path.removeprefix(request.scope.get("root_path", "")), request.app.openapi()["paths"]
    taken = {method.upper() for path in paths if compile_path(path)[0].match(place) for method in paths[path]}
    taken |= {method for one in unlisted if one.path_regex.match(place) for method in one.methods or ()}
    return HTTPException(error.status_code, headers={"Allow": ", ".join(sorted(taken))}) if taken else error


def _make(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=_TAGS,
        servers=[{"url": "/", "description": "The service that serves this file"}],
        license_info=LICENSE,
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    for operation in (one for path in made["paths"].values() for one in path.values()):
        operation.setdefault("security", [])  # what needs no credential says so
        for parameter in operation.get("parameters", ()):
            _leave_out_null(parameter["schema"])
    return made


def _leave_out_null(schema: dict[str, Any]) -> None:
    """A parameter that may be left out is never sent as null."""
    kinds = schema.pop("anyOf", [])
    for kind in kinds:
        if kind != {"type": "null"}:
            schema.update(kind)
