"""The bound on the backlog: decided runs and new ones that are ready and that no worker has taken."""

from math import ceil

from sayso.errors import TooManyRequests
from service.core.cache import Memory, Refresher
from service.core.settings import Settings
from service.core.store.suspensions.schedule import Queue, Schedule

SOONEST_S, LATEST_S = 1, 10  # of `Retry-After`


class Backlog:
    """Refuses work for workers while they are behind. The length of the ready list is known to half a second."""

    def __init__(self, schedule: Schedule, limits: Settings, refresher: Refresher) -> None:
        self._queue = Memory(schedule.read_queue, refresher)
        self._limits = limits

    async def admit(self) -> None:
        """Raise `TooManyRequests` while the backlog is over its bound."""
        queue = await self._queue.find()
        if not is_behind(queue, self._limits):
            return
        wait_s = find_wait_s(queue)
        raise TooManyRequests(
            f"{describe_queue(queue)} {describe_bound(self._limits)} Ask again in {wait_s} s.",
            retry_after_s=wait_s,
            limit="backlog",
        )


def is_behind(queue: Queue, limits: Settings) -> bool:
    """Return whether the ready list is too long or its first run too old.

    The age counts only if more runs wait than one worker drives at once: fewer are taken as soon as a worker is there.
    """
    too_old = queue.oldest_ms > limits.backlog_s * 1000 and queue.runs > limits.drain_concurrency
    return too_old or queue.runs > limits.backlog_runs


def find_wait_s(queue: Queue) -> int:
    """Return when to ask again: the first run's age estimates how long the list takes, because it is taken in order."""
    return min(max(ceil(queue.oldest_ms / 1000), SOONEST_S), LATEST_S)


def describe_queue(queue: Queue) -> str:
    """Return the length of the list and the age of its first run as a sentence."""
    runs = "1 run waits" if queue.runs == 1 else f"{queue.runs} runs wait"
    return f"{runs} for a worker, the first for {queue.oldest_ms // 1000} s."


def describe_bound(limits: Settings) -> str:
    """Return the bound as a sentence."""
    return (
        f"The bound is {limits.backlog_runs} runs (SAYSO_BACKLOG_RUNS), or {limits.backlog_s} s (SAYSO_BACKLOG_S) "
        f"with more than {limits.drain_concurrency}."
    )
