"""Every error as the protocol writes it: a type by the status, a code and a sentence; and its OpenAPI document."""

from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from sayso import errors
from sayso.core.clock import new_uuid
from sayso.core.problems import problem_type_of
from sayso.errors import SaysoError
from service.edge.api.aap.models import UUID_FORM, drop_default
from service.edge.api.problems import headers_of
from service.edge.http.bodies import misfit
from service.edge.http.openapi import Responses, build_openapi

REQUEST_ID = "X-Request-ID"
_LOG = structlog.get_logger(__name__)

TYPES = {  # the type of every error, by its status; the protocol has no other statuses
    400: "invalid_request",
    401: "authentication",
    403: "authorization",
    404: "not_found",
    405: "invalid_request",
    409: "conflict",
    422: "invalid_request",
    429: "rate_limit",
    500: "internal",
    503: "dependency",
}

CODES: Mapping[type[SaysoError], str] = {
    SaysoError: "internal_error",
    errors.InvalidInput: "invalid_field",
    errors.InvalidJson: "invalid_json",
    errors.TooLarge: "too_large",
    errors.InvalidHeader: "invalid_header",
    errors.UnsupportedMediaType: "unsupported_media_type",
    errors.NotAuthenticated: "invalid_credential",
    errors.NotAllowed: "not_allowed",
    errors.NotFound: "not_found",
    errors.Conflict: "conflict",
    errors.IdempotencyConflict: "idempotency_conflict",
    errors.AlreadyDecided: "already_terminal",
    errors.DeadlinePassed: "already_terminal",
    errors.AlreadyRedeemed: "already_consumed",
    errors.Withdrawn: "approval_withdrawn",
    errors.Frozen: "frozen",
    errors.Unreadable: "conflict",
    errors.Altered: "internal_error",
    errors.TooManyRequests: "rate_limited",
    errors.Unavailable: "store_unavailable",
}
"""The protocol's code of every error class. A class without a row takes the row of its nearest ancestor."""


class Refusal(SaysoError):
    """The protocol refuses the request, with a code of its own."""

    def __init__(
        self, status: int, code: str, message: str, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.headers = headers or {}


def render_refusal(request: Request, error: Exception) -> JSONResponse:
    """Return the protocol's response for an error."""
    refusal = _describe(error)
    request_id = request_id_of(request)
    document: dict[str, Any] = {"type": TYPES[refusal.status], "code": refusal.code, "message": refusal.message}
    if refusal.param is not None:
        document["param"] = refusal.param
    headers = {**refusal.headers, REQUEST_ID: request_id}
    return JSONResponse({"error": {**document, "request_id": request_id}}, refusal.status, headers=headers)


def request_id_of(request: Request) -> str:
    """Return the id of this request; the first call makes it."""
    if not hasattr(request.state, "aap_request_id"):
        request.state.aap_request_id = new_uuid()
    request_id: str = request.state.aap_request_id
    return request_id


def _describe(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RequestValidationError):
        return _describe_misfit(error)
    if isinstance(error, HTTPException):
        return _describe_http_exception(error)
    code = next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), CODES[SaysoError])
    if not isinstance(error, SaysoError) or (code == CODES[SaysoError] and not isinstance(error, errors.Altered)):
        _LOG.error("unexpected error", exc_info=error)
        return Refusal(500, code, "Something broke on the server. Ask the operator to search the log.")
    status = problem_type_of(type(error)).status
    status = status if status in TYPES else 400
    return Refusal(status, code, error.message, _first_path(error.facts.get("errors")), headers_of(status, error))


def _describe_misfit(error: RequestValidationError) -> Refusal:
    fault = misfit(error.errors())
    first = error.errors()[0]
    place, name = str(first["loc"][0]), str(first["loc"][-1])
    if place == "body":
        return Refusal(422, "invalid_field", fault.message, _first_path(fault.facts["errors"]))
    if name.lower() == "idempotency-key":
        code = "missing_idempotency_key" if first["type"] == "missing" else "invalid_idempotency_key"
        return Refusal(400, code, "Send the header Idempotency-Key once: 1 to 255 visible ASCII characters.", name)
    return Refusal(400, "invalid_parameter", fault.message, name)


def _describe_http_exception(error: HTTPException) -> Refusal:
    if error.status_code == 405:
        headers = dict(error.headers or {})
        message = f"This path accepts {headers.get('Allow', 'another method')}."
        return Refusal(405, "method_not_allowed", message, headers=headers)
    if error.status_code == 404:
        return Refusal(404, "not_found", "Nothing exists at this path; /api/aap/openapi.json lists the paths.")
    return Refusal(400, "invalid_request", f"{error.detail}.")


def _first_path(faults: object) -> str | None:
    if not isinstance(faults, list) or not faults:
        return None
    return str(faults[0]["path"]).removeprefix("$").removeprefix(".") or None


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
