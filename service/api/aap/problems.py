"""Answer every error as the protocol writes them: a type that follows from the status, a code, and a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sayso import errors
from sayso.clock import new_uuid
from sayso.errors import SaysoError
from service.api.routing.problems import RETRY_AFTER_S, InvalidHeader, UnsupportedMediaType
from service.delivery.addresses import UnsafeUrl
from service.http.bodies import misfit

REQUEST_ID = "X-Request-ID"
_KEY = "idempotency-key"
_LOG = structlog.get_logger(__name__)

TYPES = {
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
"""The type of every error, by its status."""


class Refusal(SaysoError):
    """The protocol's own word for why something is not done; see its code."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


TABLE: Mapping[type[Exception], tuple[int, str]] = {
    errors.InvalidInput: (422, "invalid_field"),
    errors.InvalidJson: (400, "invalid_json"),
    errors.TooLarge: (400, "too_large"),
    InvalidHeader: (400, "invalid_header"),
    UnsupportedMediaType: (400, "unsupported_media_type"),
    UnsafeUrl: (400, "invalid_webhook_url"),
    errors.NotAuthenticated: (401, "invalid_credential"),
    errors.NotAllowed: (403, "not_allowed"),
    errors.NotFound: (404, "not_found"),
    errors.Conflict: (409, "conflict"),
    errors.IdempotencyConflict: (409, "idempotency_conflict"),
    errors.AlreadyDecided: (409, "already_terminal"),
    errors.DeadlinePassed: (409, "already_terminal"),
    errors.AlreadyRedeemed: (409, "already_consumed"),
    errors.Withdrawn: (409, "approval_withdrawn"),
    errors.Frozen: (409, "frozen"),
    errors.Unreadable: (409, "conflict"),
    errors.TooManyRequests: (429, "rate_limited"),
    errors.Unavailable: (503, "store_unavailable"),
}
"""Every error of ours; a class without a row of its own takes that of the nearest class above it."""


@dataclass(frozen=True)
class _Told:
    status: int
    code: str
    message: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def answer_refusal(request: Request, error: Exception) -> JSONResponse:
    """Return the answer to a request that was not carried out."""
    told = _tell(error)
    request_id = request_id_of(request)
    document: dict[str, Any] = {"type": TYPES[told.status], "code": told.code, "message": told.message}
    if told.param is not None:
        document["param"] = told.param
    headers = {**told.headers, REQUEST_ID: request_id}
    return JSONResponse({"error": {**document, "request_id": request_id}}, told.status, headers=headers)


def request_id_of(request: Request) -> str:
    """Return the id of this request, making one at first sight."""
    if not hasattr(request.state, "aap_request_id"):
        request.state.aap_request_id = new_uuid()
    made: str = request.state.aap_request_id
    return made


def _tell(error: Exception) -> _Told:
    if isinstance(error, Refusal):
        return _Told(error.status, error.code, error.message, error.param)
    if isinstance(error, RequestValidationError):
        return _describe_misfit(error)
    if isinstance(error, HTTPException):
        return _describe_routing(error)
    row = next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), None)
    if row is None or not isinstance(error, SaysoError):
        _LOG.error("something broke", exc_info=error)
        return _Told(500, "internal_error", "Something broke on our side; the operator finds it in the log.")
    status, code = row
    faults = error.facts.get("errors")
    return _Told(status, code, error.message, _place(faults), _headers_of(status, error))


def _describe_misfit(error: RequestValidationError) -> _Told:
    """A header, a path or a query that does not fit is 400, a body 422."""
    told = misfit(error.errors())
    first = error.errors()[0]
    place, name = str(first["loc"][0]), str(first["loc"][-1])
    if place == "body":
        faults = told.facts["errors"]
        return _Told(422, "invalid_field", told.message, _place(faults))
    if name.lower() == _KEY:
        code = "missing_idempotency_key" if first["type"] == "missing" else "invalid_idempotency_key"
        return _Told(400, code, "Send the header Idempotency-Key once: 1 to 255 visible ASCII characters.", name)
    return _Told(400, "invalid_parameter", told.message, name)


def _describe_routing(error: HTTPException) -> _Told:
    if error.status_code == 405:
        headers = dict(error.headers or {})
        return _Told(
            405, "method_not_allowed", f"This path takes {headers.get('Allow', 'another method')}.", None, headers
        )
    if error.status_code == 404:
        return _Told(404, "not_found", "There is nothing at this path; /api/aap/openapi.json lists those there are.")
    return _Told(400, "invalid_request", f"{error.detail}.")


def _place(faults: object) -> str | None:
    """Return the member that the first fault is about, where it is about one."""
    if not isinstance(faults, list) or not faults:
        return None
    return str(faults[0]["path"]).removeprefix("$").removeprefix(".") or None


def _headers_of(status: int, error: SaysoError) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status in (429, 503):
        return {"Retry-After": str(error.facts.get("retry_after_s", RETRY_AFTER_S))}
    return {}
