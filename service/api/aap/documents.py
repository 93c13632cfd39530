"""Describe the protocol as it is served here: its errors, its headers, and the OpenAPI file of all of it."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field

from service.api.aap.models import UUID_FORM, drop_default
from service.http.openapi import LICENSE, Responses

PREFIX = "/api/aap"
_ALWAYS = (400, 422, 429, 500, 503)
_MEANINGS = {
    400: "The JSON, a header or a parameter cannot be read; or the receiver's address is unsafe",
    401: "No credential, or one that does not hold",
    403: "Not for this kind of credential",
    404: "Nothing there for this credential",
    409: "It stands otherwise by now; nothing was changed",
    422: "A member of the body does not fit; or the receiver did not pass its verification",
    429: "Too many; `Retry-After` says when to come back",
    500: "Something broke on our side",
    503: "The store cannot be reached; `Retry-After` says when to come back",
}
_TAGS = [
    {"name": "instances", "description": "Make instances, for provisioners."},
    {"name": "requests", "description": "Ask, follow, cancel, consume, report; for instances."},
]
_REQUEST_ID = {
    "description": "The id of this very exchange, for whoever looks into it.",
    "required": True,
    "schema": {"type": "string", "format": "uuid"},
}
_RETRY_AFTER = {
    "description": "Seconds to wait.",
    "required": True,
    "schema": {"type": "string", "pattern": "^[0-9]+$"},
}


class ErrorFacts(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(extra="forbid", title="ErrorFacts")

    type: str = Field(
        json_schema_extra={
            "enum": [
                "invalid_request",
                "authentication",
                "authorization",
                "not_found",
                "conflict",
                "rate_limit",
                "internal",
                "dependency",
            ]
        }
    )
    code: str = Field(pattern="^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
    message: str
    param: str = Field(default="", json_schema_extra=drop_default)
    request_id: str = Field(pattern=UUID_FORM)


class ErrorDocument(BaseModel):
    """What every error looks like. An error is never a decision: a denial is a 200."""

    model_config = ConfigDict(extra="forbid", title="Error")

    error: ErrorFacts


def problems(*statuses: int) -> Responses:
    """Return the errors of a route: those named, and those that any route may give."""
    return {
        status: {"model": ErrorDocument, "description": _MEANINGS[status]} for status in sorted({*statuses, *_ALWAYS})
    }


def replays(model: type[BaseModel], description: str, *statuses: int) -> Responses:
    """Return the responses of a route that answers the same request again with 200."""
    return {200: {"model": model, "description": description}, **problems(*statuses)}


def document(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """Return what makes the OpenAPI file, once."""

    def make() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _make(app)
        return app.openapi_schema

    return make


def _make(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=_TAGS,
        servers=[{"url": PREFIX}],
        license_info=LICENSE,
    )
    for operation in (one for path in made["paths"].values() for one in path.values()):
        for parameter in operation.get("parameters", ()):
            parameter["schema"].pop("default", None)
        for status, response in operation["responses"].items():
            headers = response.setdefault("headers", {})
            headers["X-Request-ID"] = _REQUEST_ID
            if status in ("429", "503"):
                headers["Retry-After"] = _RETRY_AFTER
    return made
