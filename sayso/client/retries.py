"""Flows: generators that yield a request or a time to sleep, receive the response, and return the result."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sayso.client.requests import (
    LONGEST_POLL_S,
    RETRYABLE,
    Request,
    Response,
    find_suspension,
    read_response,
    retry_after_s,
)
from sayso.core.clock import monotonic_ms
from sayso.errors import Unreachable
from sayso.wire.models import ViewT
from sayso.wire.suspensions import SuspensionView

PATIENCE_S = 30.0
"""How long a request is retried by default."""

OUTAGE_S = 600.0
"""How long a desk may be unavailable while a client waits for a decision."""

T = TypeVar("T")


@dataclass(frozen=True)
class NoResponse:
    """A request without a response: it may or may not have arrived."""

    reason: str


@dataclass(frozen=True)
class Sleep:
    """A time to sleep before the next attempt."""

    seconds: float


Flow = Generator[Request[Any] | Sleep, Any, T]


@dataclass(frozen=True)
class RetryPolicy:
    """The desk's address, how long it may be unavailable, and the clock that measures it."""

    url: str
    patience_s: float = PATIENCE_S
    clock_ms: Callable[[], float] = monotonic_ms


def send(policy: RetryPolicy, request: Request[ViewT], patience_s: float | None = None) -> Flow[ViewT]:
    """Send a request, and retry it with the same key while the desk is unavailable; raises the desk's errors."""
    patience_s = policy.patience_s if patience_s is None else patience_s
    until_ms, attempts = policy.clock_ms() + patience_s * 1000, 0
    while True:
        response: Response | NoResponse = yield request
        retryable = isinstance(response, NoResponse) or response.status in RETRYABLE
        delay_s = min(0.1 * 2**attempts, 5.0)
        if isinstance(response, Response) and retryable:
            delay_s = max(delay_s, retry_after_s(response) or 0.0)
        if (
            not retryable
            or policy.clock_ms() + delay_s * 1000 >= until_ms
            or not (request.method == "GET" or request.key is not None or not request.path.endswith("/sessions"))
        ):
            if isinstance(response, Response):
                return read_response(request, response, policy.url)
            message = (
                f"{policy.url} cannot be reached: {response.reason}. Start the desk, or set SAYSO_URL to its address."
            )
            if request.method != "GET":
                message += " The request may have arrived; send it again with the same key."
            raise Unreachable(message)
        attempts += 1
        yield Sleep(delay_s)


def await_decision(policy: RetryPolicy, suspension_id: str, wait_s: float | None) -> Flow[SuspensionView]:
    """Return the suspension once it is decided, or its current state after `wait_s`."""
    return poll(policy, partial(find_suspension, suspension_id), lambda suspension: not suspension.pending, wait_s)


def poll(
    policy: RetryPolicy, build: Callable[[int], Request[ViewT]], is_done: Callable[[ViewT], bool], wait_s: float | None
) -> Flow[ViewT]:
    """Repeat a long poll until its response is done, and return the last response after `wait_s`."""
    until_ms = None if wait_s is None else policy.clock_ms() + wait_s * 1000
    while True:
        left_s = LONGEST_POLL_S if until_ms is None else max(0.0, (until_ms - policy.clock_ms()) / 1000)
        began_ms = policy.clock_ms()
        outage_s = OUTAGE_S if until_ms is None else min(OUTAGE_S, left_s)
        response = yield from send(policy, build(int(min(LONGEST_POLL_S, left_s))), outage_s)
        if is_done(response) or left_s <= 0:
            return response
        if policy.clock_ms() - began_ms < 50:
            yield Sleep(min(0.2, left_s))  # a desk that shuts down answers long polls at once
