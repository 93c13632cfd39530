"""The OpenAPI document of the protocol, with its errors and headers."""

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from service.edge.api.aap.models import UUID_FORM, drop_default
from service.edge.api.aap.problems import TYPES
from service.edge.http.openapi import Responses, build_openapi

PREFIX = "/api/aap"
_ALWAYS = (400, 422, 429, 500, 503)
_MEANINGS = {
    400: "The JSON, a header or a parameter is invalid, or the receiver's address is unsafe",
    401: "No valid credential",
    403: "Not allowed for this kind of credential",
    404: "Not found for this credential",
    409: "The state has changed; nothing was done",
    422: "A member of the body is invalid, or the receiver failed its verification",
    429: "Too many requests; `Retry-After` says when to try again",
    500: "Something broke on the server",
    503: "The store is unreachable; `Retry-After` says when to try again",
}
_TAGS = [
    {"name": "instances", "description": "Manage instances, for provisioners."},
    {"name": "requests", "description": "Request and consume approvals and report outcomes, for instances."},
]
_REQUEST_ID = {
    "description": "The id of this request in the logs.",
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

    type: str = Field(json_schema_extra={"enum": [*dict.fromkeys(TYPES.values())]})
    code: str = Field(pattern="^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
    message: str
    param: str = Field(default="", json_schema_extra=drop_default)
    request_id: str = Field(pattern=UUID_FORM)


class ErrorDocument(BaseModel):
    """The body of every error. A denial is not an error; its status is 200."""

    model_config = ConfigDict(extra="forbid", title="Error")

    error: ErrorFacts


def problems(*statuses: int) -> Responses:
    """Return the errors of a route: the given statuses and those of every route."""
    return {
        status: {"model": ErrorDocument, "description": _MEANINGS[status]} for status in sorted({*statuses, *_ALWAYS})
    }


def replays(model: type[BaseModel], description: str, *statuses: int) -> Responses:
    """Return the responses of a route that answers a repeated request with 200."""
    return {200: {"model": model, "description": description}, **problems(*statuses)}


def make_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of the protocol."""
    built = build_openapi(app, _TAGS, {"url": PREFIX})
    for operation in (operation for path in built["paths"].values() for operation in path.values()):
        for parameter in operation.get("parameters", ()):
            parameter["schema"].pop("default", None)
        for status, response in operation["responses"].items():
            headers = response.setdefault("headers", {})
            headers["X-Request-ID"] = _REQUEST_ID
            if status in ("429", "503"):
                headers["Retry-After"] = _RETRY_AFTER
    return built
