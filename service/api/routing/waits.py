"""Long polls: answer when the condition holds, the time is over, or the caller hangs up."""

import asyncio
from asyncio import Event
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from sayso.core.clock import monotonic_ms
from service.api.routing.routes import identify
from service.store.connection.watch import HEARD_WITHIN_S, Watch, wait_woken
from service.wiring import Wiring

REVALIDATE_S = 5.0  # how often a stream checks its credential; a long poll checks when it answers
T = TypeVar("T")


async def wait_for(
    request: Request,
    topic: str,
    read: Callable[[], Awaitable[T]],
    *,
    who: str,
    done: Callable[[T], bool],
    wait_s: int,
    identify: Callable[[Request], Awaitable[object]] = identify,
) -> T:
    """Return the result of `read` as soon as it is `done`, or after `wait_s` seconds.

    The topic is subscribed before the first read, so that no change is missed. Each notification causes one read.
    A closing service answers immediately. `who` is the caller's name. Raises what `identify` raises when the credential
    has become invalid, `TooManyRequests` for too many waits, and `ClientDisconnect` when the caller hangs up.
    """
    if not wait_s:
        return await read()
    wiring: Wiring = request.state.wiring
    watch: Watch = wiring.watch
    closing: Event = request.app.state.closing
    until_ms = monotonic_ms() + wait_s * 1000
    with wiring.waiters.take(who), watch.on(topic) as moved, _watching_disconnect(request, moved) as hung_up:
        await wait_woken(moved, min(wait_s, HEARD_WITHIN_S))
        while True:
            if hung_up.done():
                hung_up.result()
                raise ClientDisconnect
            async with watch.readers:
                await identify(request)
                result = await read()
            left_s = (until_ms - monotonic_ms()) / 1000
            if left_s <= 0 or closing.is_set() or done(result):
                return result
            await wait_woken(moved, left_s)


@contextmanager
def _watching_disconnect(request: Request, moved: Event) -> Iterator[asyncio.Task[None]]:
    task = asyncio.create_task(_await_disconnect(request))
    task.add_done_callback(lambda _: moved.set())
    try:
        yield task
    finally:
        task.cancel()


async def _await_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
