"""Take runs back from workers that were handed them and are gone."""

import structlog

from sayso.errors import Unreadable
from service.core.store.suspensions.schedule import read_ready
from service.core.wiring import Wiring

log = structlog.get_logger()


async def take_back_handed(wiring: Wiring) -> int:
    """Put the runs that gone workers never got on the ready list; return their number.

    Only one process gets each, and a crash of this one leaves it to the end of its lease.
    """
    suspensions, taken = wiring.desk.suspensions, 0
    for worker in await suspensions.waiting.list_gone():
        for ready in map(read_ready, await suspensions.waiting.take_rest(worker)):
            try:
                handed = await suspensions.read_handed(ready.id, ready.packed)
            except Unreadable as error:
                log.error("suspension_unreadable", suspension=ready.id, error=error.message)
                continue
            if await wiring.desk.take_back(handed.record) is not None:
                log.info("run_taken_back", suspension=ready.id, worker=worker)
                taken += 1
    return taken
