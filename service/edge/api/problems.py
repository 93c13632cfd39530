"""Every error as a problem (RFC 9457)."""

from http import HTTPStatus
from typing import Any

import structlog
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import to_jsonable_python
from starlette.exceptions import HTTPException

from sayso.core.clock import iso_utc, new_id
from sayso.core.problems import PROBLEM_TYPES, RESERVED_MEMBERS, Problem, problem_type_of
from sayso.errors import Altered, InvalidSignature, SaysoError
from service.edge.http.bodies import misfit
from service.edge.http.openapi import MEDIA_TYPE

_RETRY_AFTER_S = {HTTPStatus.SERVICE_UNAVAILABLE: 2, HTTPStatus.TOO_MANY_REQUESTS: 60}

_LOG = structlog.get_logger(__name__)


def problem_response(problem: Problem) -> JSONResponse:
    """Return the problem as JSON."""
    return JSONResponse(problem.document(), problem.status, headers=dict(problem.headers), media_type=MEDIA_TYPE)


def describe_problem(error: Exception) -> Problem:
    """Return the problem for an error. An unexpected error is logged; the caller gets only its id."""
    if isinstance(error, RequestValidationError):
        error = misfit(error.errors())
    if isinstance(error, HTTPException):
        return _describe_http_exception(error)
    row = problem_type_of(type(error)) if isinstance(error, SaysoError) else PROBLEM_TYPES[SaysoError]
    unexpected = row.status == HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, Altered)
    if not isinstance(error, SaysoError) or unexpected:
        error_id = new_id("err")
        _LOG.error("unexpected error", error_id=error_id, exc_info=error)
        detail = f"Something broke on the server. Ask the operator to look for {error_id} in the log."
        return Problem(500, row.slug, row.title, detail, {"error_id": error_id})
    facts: dict[str, Any] = {}
    for name, value in error.facts.items():
        if name == "problems" and isinstance(value, list):
            facts["errors"] = [_split_fault(str(fault)) for fault in value]
        elif name.endswith("_at_ms") and isinstance(value, int):
            facts[name.removesuffix("_ms")] = iso_utc(value)
        else:
            facts[f"current_{name}" if name in RESERVED_MEMBERS else name] = to_jsonable_python(value)
    return Problem(row.status, row.slug, row.title, error.message, facts, headers_of(row.status, error))


def headers_of(status: int, error: SaysoError) -> dict[str, str]:
    """Return the header fields that HTTP wants beside this status."""
    if status == HTTPStatus.UNAUTHORIZED and not isinstance(error, InvalidSignature):
        return {"WWW-Authenticate": "Bearer"}
    if status in _RETRY_AFTER_S:
        return {"Retry-After": str(error.facts.get("retry_after_s", _RETRY_AFTER_S[HTTPStatus(status)]))}
    return {}


def _describe_http_exception(error: HTTPException) -> Problem:
    headers = dict(error.headers or {})
    status = HTTPStatus(error.status_code)
    details = {
        404: "Nothing exists at this path; /api/openapi.json lists the paths of the API.",
        405: f"This path does not accept that method; it accepts {headers.get('Allow', 'another')}.",
    }
    detail = details.get(status, f"{error.detail}.")
    return Problem(status, status.phrase.lower().replace(" ", "-"), status.phrase, detail, headers=headers)


def _split_fault(fault: str) -> dict[str, str]:
    """Split a schema's fault, such as `args.amount: …`, into the path and the message."""
    path, _, message = fault.partition(": ")
    return {"path": f"$.{path}", "message": message}
