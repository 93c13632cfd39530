"""Repetition of a step in the clock's process, through any outage of the store."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from service.core.logs import Trouble


async def repeat(step: Callable[[], Awaitable[object]], every_s: float, stopping: asyncio.Event, event: str) -> None:
    """Repeat the step until stopped; log its errors under `event`."""
    trouble = Trouble(event)
    while not stopping.is_set():
        try:
            await step()
            trouble.over()
        except Exception as error:  # noqa: BLE001  the clock survives and reports any error
            trouble.note(error)
        await wait(stopping, every_s)


async def wait(stopping: asyncio.Event, timeout_s: float) -> None:
    """Wait for the timeout, or until stopped."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), timeout_s)
