"""How much of each limit is used, for the diagnostics and the metrics."""

from typing import NamedTuple

from service.core.store.suspensions.schedule import Queue
from service.core.wiring import Wiring

NEAR = 0.8
"""The share of a limit from which it is nearly used up."""


class LimitUse(NamedTuple):
    """How much of a limit is used, and the setting that raises it."""

    name: str
    used: int
    most: int
    setting: str

    @property
    def share(self) -> float:
        return self.used / self.most


async def find_limits(wiring: Wiring, queue: Queue) -> list[LimitUse]:
    """Return how much of each limit of the whole desk is used."""
    limits, opened = wiring.settings, await wiring.intake.count_open()
    file_bytes = await wiring.schedule.sizes.count_file_bytes()
    return [
        LimitUse("open_items", opened.all, limits.pending_limit, "SAYSO_PENDING_LIMIT"),
        LimitUse("open_items_of_one_key", opened.most, limits.pending_per_key, "SAYSO_PENDING_PER_KEY"),
        LimitUse("backlog", queue.runs, limits.backlog_runs, "SAYSO_BACKLOG_RUNS"),
        LimitUse("attachments", file_bytes, limits.attachments_limit_bytes, "SAYSO_ATTACHMENTS_LIMIT_BYTES"),
    ]
