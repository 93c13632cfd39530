"""A refused request is repeated when the desk says, or not at all if that is after the caller's own deadline."""

import pytest

from sayso.client import administration
from sayso.client.requests import Response
from sayso.client.retries import RetryPolicy, Sleep, send
from sayso.errors import TooManyRequests

REFUSED = b'{"type": "about:blank", "title": "x", "status": 429, "detail": "Too many."}'


def refuse(patience_s: float, retry_after: str) -> float:
    """Return how long the client waits after one refusal."""
    flow = send(RetryPolicy("http://desk", patience_s, lambda: 0.0), administration.DIAGNOSE)
    next(flow)
    asked = flow.send(Response(429, {"retry-after": retry_after, "content-type": "application/problem+json"}, REFUSED))
    assert isinstance(asked, Sleep)
    return asked.seconds


def test_client_waits_as_long_as_retry_after_says() -> None:
    assert refuse(600, "150") == 150
    assert refuse(600, "0") == 0.1


def test_client_does_not_wait_beyond_its_own_deadline() -> None:
    with pytest.raises(TooManyRequests):
        refuse(100, "150")
