"""Renewal of a lease while its run is driven."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sayso.core.transitions.execution import Fence
from sayso.errors import Conflict, Unavailable, Unreadable
from service.core.desk.desk import Desk


@contextmanager
def renewed(desk: Desk, suspension_id: str, fence: Fence) -> Iterator[None]:
    """Renew the lease each third of its length during the block. A task starts only once the first third is over."""
    renewing: list[asyncio.Task[None]] = []

    def begin() -> None:
        renewing.append(asyncio.create_task(_renew(desk, suspension_id, fence)))

    first = asyncio.get_running_loop().call_later(fence.lease_ms / 3000, begin)
    try:
        yield
    finally:
        first.cancel()
        for task in renewing:
            task.cancel()


async def _renew(desk: Desk, suspension_id: str, fence: Fence) -> None:
    while True:
        with suppress(Unavailable):
            try:
                await desk.renew(suspension_id, fence)
            except (Conflict, Unreadable):
                return
        await asyncio.sleep(fence.lease_ms / 3000)
