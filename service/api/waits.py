"""Answer a long poll as soon as there is something to tell, or when its time is over."""

from asyncio import Event
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import Request

from sayso.clock import monotonic_ms
from service.store.watch import wait_woken
from service.wiring import Wiring

LOOK_AGAIN_S = 5.0
"""A wake-up is a hint that may be lost, so everybody who waits looks again this often."""

Thing = TypeVar("Thing")


async def wait_for(
    request: Request, topic: str, read: Callable[[], Awaitable[Thing]], *, done: Callable[[Thing], bool], wait_s: int
) -> Thing:
    """Read a thing until it is done, as long as the caller waits; return how it stands then.

    It is subscribed to before it is read, so that nothing slips in between. A service that is closing answers at once.
    """
    wiring: Wiring = request.app.state.wiring
    closing: Event = request.app.state.closing
    until_ms = monotonic_ms() + wait_s * 1000
    with wiring.watch.on(topic) as moved:
        while True:
            thing = await read()
            left_s = (until_ms - monotonic_ms()) / 1000
            if left_s <= 0 or closing.is_set() or done(thing):
                return thing
            await wait_woken(moved, min(left_s, LOOK_AGAIN_S))
