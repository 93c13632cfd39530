"""Answer every error as a problem (RFC 9457), from the one table of error classes and their HTTP status."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import structlog
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import to_jsonable_python
from starlette.exceptions import HTTPException

from sayso import errors
from sayso.clock import iso_utc, new_id
from sayso.errors import SaysoError
from service.auth.hosts import UnknownHost
from service.http.bodies import misfit
from service.http.openapi import MEDIA_TYPE

RETRY_AFTER_S = 2
"""When to come back to a store that could not be reached."""

_LOG = structlog.get_logger(__name__)


class InvalidHeader(errors.InvalidInput):
    """A header cannot be taken as it is; correct it and send the request again."""


class UnsupportedMediaType(errors.InvalidInput):
    """The body is of a kind that is not read here; send JSON as Content-Type: application/json."""


TABLE: Mapping[type[Exception], tuple[int, str]] = {
    SaysoError: (500, "Something broke"),
    errors.InvalidInput: (422, "Invalid input"),
    errors.InvalidJson: (400, "Not strict JSON"),
    errors.TooLarge: (413, "Too large"),
    errors.UnknownName: (422, "Unknown name"),
    InvalidHeader: (400, "Invalid header"),
    UnknownHost: (421, "Unknown host"),
    UnsupportedMediaType: (415, "Unsupported media type"),
    errors.NotAuthenticated: (401, "Not authenticated"),
    errors.InvalidSignature: (401, "Invalid signature"),
    errors.NotAllowed: (403, "Not allowed"),
    errors.SelfApproval: (403, "Not your own call"),
    errors.PolicyForbids: (403, "The rules forbid it"),
    errors.NotFound: (404, "Not found"),
    errors.Conflict: (409, "Conflict"),
    errors.AlreadyDecided: (409, "Already decided"),
    errors.DeadlinePassed: (409, "Deadline passed"),
    errors.StaleDigest: (409, "Stale digest"),
    errors.IdempotencyConflict: (409, "Idempotency-Key used before"),
    errors.IllegalTransition: (409, "No such step"),
    errors.AlreadyRedeemed: (409, "Already consumed"),
    errors.Withdrawn: (409, "Approval withdrawn"),
    errors.LeaseHeld: (409, "Lease held"),
    errors.Frozen: (409, "Frozen"),
    errors.ClockInDoubt: (409, "Clock in doubt"),
    errors.StaleAttempt: (409, "Stale attempt"),
    errors.Unreadable: (409, "Unreadable record"),
    errors.TooManyRequests: (429, "Too many requests"),
    errors.ModelError: (502, "The model failed"),
    errors.Unavailable: (503, "Unavailable"),
}
"""Every error of ours; a class without a row of its own takes that of the nearest class above it."""

_OWN_MEMBERS = frozenset({"type", "title", "status", "detail", "instance"})


@dataclass(frozen=True)
class Problem:
    """An error as it is told to whoever called: a status, a name for it, a sentence that says what to do, and facts."""

    status: int
    slug: str
    title: str
    detail: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> JSONResponse:
        """Return the problem as JSON."""
        members = {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.facts,
        }
        return JSONResponse(members, self.status, headers=dict(self.headers), media_type=MEDIA_TYPE)


def describe_problem(error: Exception) -> Problem:
    """Return what to tell of an error. What nobody foresaw goes to the log; the caller is told only where to look."""
    if isinstance(error, RequestValidationError):
        error = misfit(error.errors())
    if isinstance(error, HTTPException):
        return _describe_refusal(error)
    status, title = next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), TABLE[SaysoError])
    if not isinstance(error, SaysoError) or status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _describe_breakage(error)
    return Problem(status, _slug_of(type(error)), title, error.message, _facts_of(error), _headers_of(status, error))


def _describe_refusal(error: HTTPException) -> Problem:
    """Tell what the router or the framework refused."""
    headers = dict(error.headers or {})
    status = HTTPStatus(error.status_code)
    details = {
        404: "There is nothing at this path; /api/openapi.json lists those of the API.",
        405: f"This path does not take that method; it takes {headers.get('Allow', 'another')}.",
    }
    detail = details.get(status, f"{error.detail}.")
    return Problem(status, status.phrase.lower().replace(" ", "-"), status.phrase, detail, headers=headers)


def _describe_breakage(error: Exception) -> Problem:
    error_id = new_id("err")
    _LOG.error("something broke", error_id=error_id, exc_info=error)
    detail = f"Something broke on our side. Ask the operator to look for {error_id} in the log."
    return Problem(500, "something-broke", TABLE[SaysoError][1], detail, {"error_id": error_id})


def _slug_of(kind: type[Exception]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def _facts_of(error: SaysoError) -> dict[str, Any]:
    """Return the facts as members of a problem: moments as RFC 3339, and none in the place of a problem's own."""
    facts: dict[str, Any] = {}
    for name, value in error.facts.items():
        if name == "problems" and isinstance(value, list):
            facts["errors"] = [_split_fault(str(fault)) for fault in value]
        elif name.endswith("_at_ms") and isinstance(value, int):
            facts[name.removesuffix("_ms")] = iso_utc(value)
        else:
            facts[f"current_{name}" if name in _OWN_MEMBERS else name] = to_jsonable_python(value)
    return facts


def _split_fault(fault: str) -> dict[str, str]:
    """Tell what a schema says of a place, such as `args.amount: …`, as any other fault of a body is told."""
    path, _, message = fault.partition(": ")
    return {"path": f"$.{path}", "message": message}


def _headers_of(status: int, error: SaysoError) -> dict[str, str]:
    if status == HTTPStatus.UNAUTHORIZED and not isinstance(error, errors.InvalidSignature):
        return {"WWW-Authenticate": "Bearer"}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return {"Retry-After": str(error.facts.get("retry_after_s", RETRY_AFTER_S))}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return {"Retry-After": str(error.facts.get("retry_after_s", 60))}
    return {}
