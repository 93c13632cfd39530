"""Say step by step what a client does, once for both clients: send, pause, read, try again.

A flow is a generator: it yields what is to be sent or how long to pause, is sent the answer, and returns the result.
`sayso/client/clients.py` drives it, with or without asyncio.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from sayso.client.problems import AGAIN, Answer, read_reply, retry_after_s
from sayso.client.requests import LONGEST_POLL_S, Exchange, R, find_run, find_suspension
from sayso.client.responses import Run, Suspension
from sayso.clock import monotonic_ms
from sayso.errors import Unreachable

PATIENCE_S = 30.0
"""How long a request is tried again while the desk is away, unless the client says otherwise."""

OUTAGE_S = 600.0
"""How long the desk may be away while somebody waits for a decision."""

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Send this; the flow goes on with an `Answer`, or with the `Lost` that came instead."""

    exchange: Exchange[Any]


@dataclass(frozen=True)
class Lost:
    """No answer came: nobody knows whether the request did."""

    why: str


@dataclass(frozen=True)
class Pause:
    """Wait for so long."""

    s: float


Step = Send | Pause
Flow = Generator[Step, Any, T]


@dataclass(frozen=True)
class Patience:
    """Where the desk is, what the time is, and how long it may be away."""

    url: str
    patience_s: float = PATIENCE_S
    clock_ms: Callable[[], float] = monotonic_ms


def send(patience: Patience, exchange: Exchange[R], patience_s: float | None = None) -> Flow[R]:
    """Send a request until it is answered, always the same one under the same key, so that nothing is done twice.

    Raises what the desk answers, and `Unavailable` or `Unreachable` when it was away for too long.
    """
    patience_s = patience.patience_s if patience_s is None else patience_s
    until_ms, tries = patience.clock_ms() + patience_s * 1000, 0
    while True:
        answer: Answer | Lost = yield Send(exchange)
        again = isinstance(answer, Lost) or answer.status in AGAIN
        pause_s = min(0.1 * 2**tries, 5.0)
        if isinstance(answer, Answer) and again:
            pause_s = max(pause_s, retry_after_s(answer) or 0.0)
        if not again or patience.clock_ms() + pause_s * 1000 >= until_ms or not _may_repeat(exchange):
            return _read(patience, exchange, answer)
        tries += 1
        yield Pause(pause_s)


def await_decision(patience: Patience, suspension_id: str, wait_s: float | None) -> Flow[Suspension]:
    """Return the suspension when nobody is waited for any more, or as it stands when the time is over.

    The wait goes on through restarts of the desk.
    """
    return (yield from _await(patience, suspension_id, wait_s, find_suspension, lambda found: not found.pending))


def await_end(patience: Patience, run_id: str, wait_s: float | None) -> Flow[Run]:
    """Return the run when it has ended, or as it stands when the time is over."""
    return (yield from _await(patience, run_id, wait_s, find_run, lambda found: found.ended))


def _await(
    patience: Patience,
    id_: str,
    wait_s: float | None,
    find: Callable[[str, int], Exchange[R]],
    done: Callable[[R], bool],
) -> Flow[R]:
    until_ms = None if wait_s is None else patience.clock_ms() + wait_s * 1000
    while True:
        left_s = LONGEST_POLL_S if until_ms is None else max(0.0, (until_ms - patience.clock_ms()) / 1000)
        began_ms = patience.clock_ms()
        outage_s = OUTAGE_S if until_ms is None else min(OUTAGE_S, left_s)
        found = yield from send(patience, find(id_, int(min(LONGEST_POLL_S, left_s))), outage_s)
        if done(found) or left_s <= 0:
            return found
        if patience.clock_ms() - began_ms < 50:
            yield Pause(min(0.2, left_s))  # a desk that is closing answers at once


def _may_repeat(exchange: Exchange[Any]) -> bool:
    """Whether sending it again does nothing twice: it only reads, has a key, or sets something to a state."""
    return exchange.method == "GET" or exchange.key is not None or not exchange.path.endswith("/sessions")


def _read(patience: Patience, exchange: Exchange[R], answer: Answer | Lost) -> R:
    if isinstance(answer, Answer):
        return read_reply(exchange, answer, patience.url)
    told = f"{patience.url} cannot be reached: {answer.why}. Start the desk, or set SAYSO_URL to where it is."
    if exchange.method == "GET":
        raise Unreachable(told)
    raise Unreachable(f"{told} Nobody knows whether the request came through; send it again with the same key.")
