"""Void every permit and lease of a desk whose store lost its latest changes, so that nothing runs twice."""

from collections.abc import Sequence
from typing import NamedTuple

from sayso.errors import Unreadable
from service.core.wiring import Wiring


class Voided(NamedTuple):
    """How many suspensions were pending, in doubt and failed after it, and the ids of the unreadable ones."""

    pending: int
    doubted: int
    failed: int
    unreadable: Sequence[str]


async def void_all_starts(wiring: Wiring, holder: str, why: str) -> Voided:
    """Void the permits and leases of all suspensions that have not ended. Nothing may run meanwhile."""

    statuses: list[str] = []
    unreadable: list[str] = []
    for suspension_id in await wiring.schedule.everything():
        try:
            statuses.append((await wiring.desk.void_starts(suspension_id, holder, why)).record.status)
        except Unreadable:
            unreadable.append(suspension_id)
    keys, redis = wiring.store.keys, wiring.store.redis
    handed = [name async for name in redis.scan_iter(match=f"{keys.handed('')}*", count=1_000)]
    await redis.delete(keys.ready, keys.waiting, *handed)
    pending, failed = statuses.count("pending"), statuses.count("failed")
    return Voided(pending, len(statuses) - pending - failed, failed, unreadable)
