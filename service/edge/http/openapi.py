"""The OpenAPI file and its problem responses."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from http import HTTPStatus
from threading import Lock
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, compile_path

MEDIA_TYPE = "application/problem+json"  # the media type of problems (RFC 9457)
LICENSE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}

Responses = dict[int | str, dict[str, Any]]

_KEPT_NAMES = {
    "sayso__wire__suspensions__WhoView": "service__edge__api__views__WhoView",
    "sayso__wire__people__WhoView": "service__features__people__directory_api__WhoView",
}
"""Schemas that keep their first names, which generated clients use."""

_REF = {"$ref": "#/components/schemas/Problem"}
_MEANINGS = {
    400: "The JSON or a header is malformed",
    401: "The credential is missing or invalid",
    403: "The credential has no permission",
    404: "This credential sees no such record",
    409: "The record has changed; nothing was written",
    413: "The body is over a limit",
    415: "The body is not application/json",
    421: "The service does not serve this host",
    422: "The request is invalid",
    429: "Too many requests; `Retry-After` says when to retry",
    500: "Internal error",
    503: "The store is unavailable; `Retry-After` says when to retry",
}

_TAGS = [
    {"name": "sessions", "description": "Sign a person in, for scripts; browsers use the pages."},
    {"name": "agents", "description": "The agents that workers have registered."},
    {"name": "runs", "description": "Start, follow and cancel runs."},
    {"name": "suspensions", "description": "Open items, and the decisions on them."},
    {"name": "freezes", "description": "Freeze a tool, an agent or everything, and unfreeze it."},
    {"name": "reviewers", "description": "Reviewers, for admins."},
    {"name": "activity", "description": "What people did and what was refused, in a hash chain."},
    {"name": "inquiries", "description": "Claims of items, and questions of reviewers to requesters."},
    {"name": "comments", "description": "Comments of reviewers on items, for other reviewers only."},
    {"name": "attachments", "description": "Files attached to items, by reviewers and by the owner of the run."},
    {"name": "groups", "description": "Groups of reviewers, which rules name as `group:<name>`."},
    {"name": "contacts", "description": "People's addresses in channels."},
    {"name": "views", "description": "Searches of the inbox that people save under a name."},
    {"name": "grants", "description": "Standing grants, which let calls run that a rule would ask about."},
    {"name": "channels", "description": "The configured channels, for admins."},
    {"name": "reports", "description": "Reports on decisions, for people."},
    {
        "name": "evidence",
        "description": "Signed checkpoints, and evidence of what was decided, for admins and auditors.",
    },
    {"name": "duty", "description": "When people want to be notified, and when they are absent."},
    {"name": "keys", "description": "API keys of agents, for admins."},
    {"name": "webhooks", "description": "Endpoints that receive events, and senders of signed decisions."},
    {"name": "hooks", "description": "Decisions by signed webhook."},
    {"name": "policy", "description": "Replays of rules, and the versions of the rulebook."},
    {"name": "health", "description": "Health and readiness, for monitoring."},
]


class Fault(BaseModel):
    """One fault of a request."""

    path: str = Field(examples=["$.action"])
    message: str = Field(examples=["is missing; add it"])


class ProblemDocument(BaseModel):
    """The body of every error; facts of the error are further members."""

    model_config = ConfigDict(title="Problem", extra="allow")

    type: str = Field(examples=["/problems/already-decided"])
    title: str = Field(examples=["Already decided"])
    status: int = Field(examples=[409])
    detail: str = Field(description="What is wrong, and what to do next.")
    errors: list[Fault] | None = Field(default=None, description="Every fault of the request.")


def problems(*statuses: int) -> Responses:
    """Return the problem responses of a route: these statuses, and those of every route."""
    return {
        status: {"description": _MEANINGS[status], "content": {MEDIA_TYPE: {"schema": _REF}}}
        for status in sorted({*statuses, *(413, 422, 500, 503)})
    }


READS = problems(401, 403, 404, 409)  # problems of reading one record; 409 means it is damaged
WAITS = problems(401, 403, 404, 429)  # problems of waiting for one record
ASKS = problems(400, 401, 403, 404, 409, 415, 429)  # problems of creating a record
WRITES = problems(400, 401, 403, 404, 409, 415)  # problems of changing a record


def join_routes(*routers: APIRouter) -> tuple[BaseRoute, ...]:
    """Return the routes of routers. FastAPI resolves them at the first request, once for all apps of a process."""
    joined = APIRouter()
    for router in routers:
        joined.include_router(router)
    return tuple(joined.routes)


class Document:
    """The OpenAPI file of an app: built once, in a thread, and sent as it was written then."""

    def __init__(self, build: Callable[[], dict[str, Any]]) -> None:
        self._build, self._lock = build, Lock()

    def __call__(self) -> dict[str, Any]:
        """Return the file; blocking when it is built."""
        with self._lock:
            return self._built

    @cached_property
    def _built(self) -> dict[str, Any]:
        return self._build()

    @cached_property
    def _written(self) -> bytes:
        return json.dumps(self(), ensure_ascii=False, separators=(",", ":")).encode()

    @cached_property
    def methods(self) -> list[tuple[re.Pattern[str], frozenset[str]]]:
        """The methods of each path, by the pattern of the path."""
        paths = self()["paths"]
        return [(compile_path(path)[0], frozenset(map(str.upper, paths[path]))) for path in paths]

    async def answer(self, _request: Request) -> Response:
        return Response(await asyncio.to_thread(lambda: self._written), media_type="application/json")


def serve_document(app: FastAPI, path: str, build: Callable[[FastAPI], dict[str, Any]] | None = None) -> Document:
    """Serve the OpenAPI file of an app at a path."""
    document = Document(lambda: (build or _build)(app))
    app.openapi = document  # type: ignore[method-assign]
    app.add_route(path, document.answer, include_in_schema=False)
    return document


def build_openapi(app: FastAPI, tags: list[dict[str, Any]], server: dict[str, str | Any]) -> dict[str, Any]:
    """Return the OpenAPI file of an app as FastAPI builds it."""
    return get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=tags,
        servers=[server],
        license_info=LICENSE,
    )


def drop_null(schema: dict[str, Any]) -> None:
    """Remove null from the type of an optional part, because no client sends it."""
    for kind in schema.pop("anyOf", ()):
        if kind != {"type": "null"}:
            schema.update(kind)


async def name_methods(request: Request, error: Exception, unlisted: Iterable[Route] = ()) -> Exception:
    """Add all methods of the path, also of `unlisted` routes, to a 405 error: the router names only one route's."""
    if not isinstance(error, HTTPException) or error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return error
    requested, document = request.url.path.removeprefix(request.scope.get("root_path", "")), request.app.openapi
    known = await asyncio.to_thread(lambda: document.methods)
    allowed = {method for path, methods in known if path.match(requested) for method in methods}
    allowed |= {method for route in unlisted if route.path_regex.match(requested) for method in route.methods or ()}
    return HTTPException(error.status_code, headers={"Allow": ", ".join(sorted(allowed))}) if allowed else error


def _build(app: FastAPI) -> dict[str, Any]:
    described = build_openapi(app, _TAGS, {"url": "/", "description": "The service that serves this file"})
    written = json.dumps(described)
    for name, kept in _KEPT_NAMES.items():
        written = written.replace(name, kept)
    built: dict[str, Any] = json.loads(written)
    components = built.setdefault("components", {})
    schemas = components["schemas"] = dict(sorted(components.get("schemas", {}).items()))
    problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    for operation in (operation for path in built["paths"].values() for operation in path.values()):
        operation.setdefault("security", [])  # an empty list means that no credential is needed
        for parameter in operation.get("parameters", ()):
            drop_null(parameter["schema"])
    return built
