"""Turn what a desk answers when it refuses into the errors of `sayso/errors.py`, with its facts and its own words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import ValidationError

from sayso.canonical_json import parse_json
from sayso.client.requests import Exchange, R
from sayso.errors import InvalidJson, NotAuthenticated, SaysoError, TooLarge, Unavailable, Unreachable
from sayso.problems import RESERVED_MEMBERS, error_class_of

AGAIN = frozenset({429, 502, 503, 504})
"""Whoever answers like this did nothing; the same request may be sent again in a moment."""


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the header fields in small letters, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_reply(exchange: Exchange[R], answer: Answer, url: str) -> R:
    """Return what the answer says; raises the error it tells of, or `Unreachable` where it is not a desk's at all."""
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise read_problem(answer, url)
    try:
        return exchange.reply.model_validate_json(answer.body or b"{}")
    except ValidationError as error:
        raise Unreachable(_no_desk(answer, url), status=answer.status) from error


def read_problem(answer: Answer, url: str) -> SaysoError:
    """Return the error that a refusal tells of."""
    try:
        told = parse_json(answer.body)
    except (InvalidJson, TooLarge):
        told = None
    if not isinstance(told, dict) or not {"type", "detail"} <= told.keys():  # other programs, too, have a detail
        return _read_stranger(answer, url)
    facts = {name: value for name, value in told.items() if name not in RESERVED_MEMBERS}
    kind = error_class_of(str(told["type"]), answer.status)
    if kind is NotAuthenticated:
        message = f"{told['detail']} Agents take their key for {url} from SAYSO_KEY; people use `sayso login`."
        return NotAuthenticated(message, **facts)
    return kind(str(told["detail"]), **facts)


def retry_after_s(answer: Answer) -> float | None:
    """Return how long the desk asks to be left alone, up to a minute; None where it does not say."""
    said = answer.headers.get("retry-after", "")
    return min(float(said), 60.0) if re.fullmatch(r"[0-9]{1,6}", said) else None


def _read_stranger(answer: Answer, url: str) -> SaysoError:
    if answer.status in AGAIN:
        return Unavailable(f"{url} answered {answer.status}; the desk is away just now. Try again in a moment.")
    return Unreachable(_no_desk(answer, url), status=answer.status)


def _no_desk(answer: Answer, url: str) -> str:
    kind = answer.headers.get("content-type", "nothing").partition(";")[0]
    return (
        f"{url} answered {answer.status} with {kind}, as no Sayso does. "
        "Set SAYSO_URL to where one runs, such as http://127.0.0.1:8321."
    )
