"""Work that goes on after an answer to a provider; the process waits for it when it stops."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

from sayso.errors import SaysoError
from service.channels.base import DeliveryFailed

GRACE_S = 10
AT_ONCE = 32
"""How many decisions of a channel are carried out at once, so that a burst of them delays no answer."""
_LOG = structlog.get_logger(__name__)

Result = TypeVar("Result")


class Background:
    """The tasks of one channel in one process. Decisions take `turns`."""

    def __init__(self, channel: str) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self._channel = channel
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start work whose result or error somebody awaits."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that nobody awaits; a failure is logged."""
        self.start(self._attempt(work))

    async def finish(self) -> None:
        """Wait for all work, also for what it starts, up to `GRACE_S`."""
        try:
            async with asyncio.timeout(GRACE_S):
                while self._tasks:
                    await asyncio.wait(set(self._tasks))
        except TimeoutError:
            _LOG.warning("channel_work_left", channel=self._channel, tasks=len(self._tasks))

    async def _attempt(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except DeliveryFailed as failure:
            _LOG.info("channel_not_reached", channel=self._channel, why=failure.reason)
        except SaysoError as error:
            _LOG.warning("channel_work_failed", channel=self._channel, why=error.message)
        except Exception:  # noqa: BLE001 - nobody awaits it, so the log is all that shows it
            _LOG.exception("channel_work_failed", channel=self._channel)
