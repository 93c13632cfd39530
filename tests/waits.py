"""Wait for a condition that sends no event."""

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE_S = 20
_PAUSE_S = 0.005


async def until(look: Callable[[], Awaitable[object]]) -> None:
    """Return as soon as a look finds what is waited for; raises `TimeoutError` when none does in a long time."""
    async with asyncio.timeout(PATIENCE_S):
        while not await look():  # noqa: ASYNC110 - what it looks at sets no event
            await asyncio.sleep(_PAUSE_S)
