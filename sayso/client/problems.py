"""Errors of `sayso/errors.py`, rebuilt from the desk's problem responses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import ValidationError

from sayso.canonical_json import parse_json
from sayso.client.requests import Request
from sayso.client.responses import ResponseModelT
from sayso.errors import InvalidJson, NotAuthenticated, SaysoError, TooLarge, Unavailable, Unreachable
from sayso.problems import RESERVED_MEMBERS, error_class_of

RETRYABLE = frozenset({429, 502, 503, 504})
"""Statuses of requests that changed nothing and may be sent again."""


@dataclass(frozen=True)
class Response:
    """A response: status, headers with lowercase names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_response(request: Request[ResponseModelT], response: Response, url: str) -> ResponseModelT:
    """Return the parsed body; raises the error that the response describes, or `Unreachable` for a foreign one."""
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise read_problem(response, url)
    try:
        return request.model.model_validate_json(response.body or b"{}")
    except ValidationError as error:
        raise Unreachable(_describe_foreign(response, url), status=response.status) from error


def read_problem(response: Response, url: str) -> SaysoError:
    """Return the error that a problem response describes."""
    try:
        problem = parse_json(response.body)
    except (InvalidJson, TooLarge):
        problem = None
    if not isinstance(problem, dict) or not {"type", "detail"} <= problem.keys():  # other servers send a detail, too
        if response.status in RETRYABLE:
            return Unavailable(f"{url} answered {response.status}: the desk is unavailable. Try again in a moment.")
        return Unreachable(_describe_foreign(response, url), status=response.status)
    facts = {name: value for name, value in problem.items() if name not in RESERVED_MEMBERS}
    kind = error_class_of(str(problem["type"]), response.status)
    if kind is NotAuthenticated:
        message = f"{problem['detail']} Agents take their key for {url} from SAYSO_KEY; people use `sayso login`."
        return NotAuthenticated(message, **facts)
    return kind(str(problem["detail"]), **facts)


def retry_after_s(response: Response) -> float | None:
    """Return the seconds in `Retry-After`, at most 60; None without them."""
    value = response.headers.get("retry-after", "")
    return min(float(value), 60.0) if re.fullmatch(r"[0-9]{1,6}", value) else None


def _describe_foreign(response: Response, url: str) -> str:
    kind = response.headers.get("content-type", "no content").partition(";")[0]
    return (
        f"{url} answered {response.status} with {kind}, so it is not a Sayso desk. "
        "Set SAYSO_URL to the address of a desk, such as http://127.0.0.1:8321."
    )
