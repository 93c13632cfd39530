"""Wait for a condition that sends no event, and work beside a test."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 20
_PAUSE_S = 0.005


async def until(look: Callable[[], Awaitable[object]]) -> None:
    """Return as soon as a look finds what is waited for; raises `TimeoutError` when none does in a long time."""
    async with asyncio.timeout(PATIENCE_S):
        while not await look():  # noqa: ASYNC110 - what it looks at sets no event
            await asyncio.sleep(_PAUSE_S)


@contextmanager
def working_beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do work in a thread beside the block; it ends by the event that it is given."""
    stop = threading.Event()
    worker = threading.Thread(target=work, args=(stop,))
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()
