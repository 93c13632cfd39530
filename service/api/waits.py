"""Answer a long poll as soon as there is something to tell, or when its time is over."""

from asyncio import Event
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import Request

from sayso.clock import monotonic_ms
from service.api.routes import identify
from service.store.watch import HEARD_WITHIN_S, Watch, wait_woken

LOOK_AGAIN_S = 5.0
"""How often a stream looks whether its credential still holds. A long poll does so when it answers."""

Thing = TypeVar("Thing")


async def wait_for(
    request: Request,
    topic: str,
    read: Callable[[], Awaitable[Thing]],
    *,
    done: Callable[[Thing], bool],
    wait_s: int,
    identify: Callable[[Request], Awaitable[object]] = identify,
) -> Thing:
    """Read a thing until it is done, as long as the caller waits; return how it stands then.

    It is heard of before it is read, so that nothing slips in between; nobody reads again before they are woken.
    A service that is closing answers at once, and a credential that ended meanwhile is told nothing more.
    """
    if not wait_s:
        return await read()
    watch: Watch = request.app.state.wiring.watch
    closing: Event = request.app.state.closing
    until_ms = monotonic_ms() + wait_s * 1000
    with watch.on(topic) as moved:
        await wait_woken(moved, min(wait_s, HEARD_WITHIN_S))
        while True:
            async with watch.readers:
                await identify(request)
                thing = await read()
            left_s = (until_ms - monotonic_ms()) / 1000
            if left_s <= 0 or closing.is_set() or done(thing):
                return thing
            await wait_woken(moved, left_s)
