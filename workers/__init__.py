"""Settings that a worker's jobs share, and repetition of a step through any outage of the store."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from service.core.logs import Trouble
from service.core.settings import Settings, load, variable_of
from service.core.settings.secrets import erase
from service.core.settings.tenants import find_desk

_HIDDEN = {
    *(variable_of(name) for name, field in Settings.model_fields.items() if not field.repr),  # URLs with passwords
    "SAYSO_KEY_FILE",
    "SAYSO_CHECKPOINTS_REQUIRED_H",  # which is invalid without the checkpoints
}
_held: list[Settings] = []


def hold_settings(settings: Settings) -> None:
    """Keep the settings for the jobs that this process forks, and passwords out of the environment of their tools."""
    is_named = "SAYSO_REDIS_URL" in map(str.upper, os.environ)
    erase(_HIDDEN if is_named else {*_HIDDEN, "REDIS_URL"})  # which may otherwise be the tools' own
    _held[:] = [settings]


def held_settings() -> Settings:
    """Return the settings that the worker holds, or those of the environment."""
    return _held[0] if _held else find_desk(load())


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
