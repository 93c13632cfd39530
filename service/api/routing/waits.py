"""Answer a long poll as soon as there is something to tell, when its time is over, or when its caller hangs up."""

import asyncio
from asyncio import Event
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from sayso.clock import monotonic_ms
from service.api.routing.routes import identify
from service.store.connection.watch import HEARD_WITHIN_S, Watch, wait_woken
from service.wiring import Wiring

LOOK_AGAIN_S = 5.0
"""How often a stream looks whether its credential still holds. A long poll does so when it answers."""

Thing = TypeVar("Thing")


async def wait_for(
    request: Request,
    topic: str,
    read: Callable[[], Awaitable[Thing]],
    *,
    who: str,
    done: Callable[[Thing], bool],
    wait_s: int,
    identify: Callable[[Request], Awaitable[object]] = identify,
) -> Thing:
    """Read a thing until it is done, as long as the caller waits; return how it stands then.

    It is heard of before it is read, so that nothing slips in between; nobody reads again before they are woken.
    A service that is closing answers at once, and a credential that ended meanwhile is told nothing more. `who` is the
    caller's name. Raises `TooManyRequests` when they wait too often, `ClientDisconnect` when they hang up.
    """
    if not wait_s:
        return await read()
    wiring: Wiring = request.state.wiring
    watch: Watch = wiring.watch
    closing: Event = request.app.state.closing
    until_ms = monotonic_ms() + wait_s * 1000
    with wiring.waiters.take(who), watch.on(topic) as moved, _hearing(request, moved) as hung_up:
        await wait_woken(moved, min(wait_s, HEARD_WITHIN_S))
        while True:
            if hung_up.done():
                hung_up.result()
                raise ClientDisconnect
            async with watch.readers:
                await identify(request)
                thing = await read()
            left_s = (until_ms - monotonic_ms()) / 1000
            if left_s <= 0 or closing.is_set() or done(thing):
                return thing
            await wait_woken(moved, left_s)


@contextmanager
def _hearing(request: Request, moved: Event) -> Iterator[asyncio.Task[None]]:
    """Give a task that ends when the caller hangs up; it sets `moved` then."""
    task = asyncio.create_task(_hear_end(request))
    task.add_done_callback(lambda _: moved.set())
    try:
        yield task
    finally:
        task.cancel()


async def _hear_end(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
