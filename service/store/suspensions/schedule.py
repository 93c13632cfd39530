"""Find what is due, and hand what is ready to exactly one taker at a time.

Both lists are hints: every verb re-checks the record, and what a taker loses comes back through the schedule.
"""

from dataclasses import dataclass
from typing import Any

from sayso.errors import Unreadable
from service.store.connection.connecting import text, translated
from service.store.connection.pipeline import Script
from service.store.suspensions.packing import unpack_record
from service.store.tenants import TenantStore

_WRITING = Script("#!lua\nreturn redis.call('TIME')")
"""It does not say that it only reads: a server that is full, read-only or cannot sync refuses it."""


@dataclass(frozen=True)
class Ready:
    """A suspension that may be taken up, and what was saved of it then."""

    id: str
    packed: bytes


class Schedule:
    """When somebody must look at which suspension, and what waits for a worker."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._taking = store.connections.ready

    async def now_ms(self) -> int:
        """Return the store server's time."""
        async with translated():
            seconds, micros = await self._redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def writing_ms(self) -> int:
        """Return the store server's time, if it takes writes; raises `Unavailable`. Nothing is written for that."""
        async with translated():
            seconds, micros = await self._taking.run(_WRITING, [])
        return int(seconds) * 1000 + int(micros) // 1000

    async def due(self, now_ms: int, limit: int = 500) -> list[str]:
        """Return the suspensions whose moment has come, the most overdue first."""
        async with translated():
            ids = await self._redis.zrangebyscore(self._keys.schedule, "-inf", now_ms, start=0, num=limit)
        return [_id_of(one) for one in ids]

    async def deadlines(self, after_ms: int, until_ms: int, limit: int) -> list[str]:
        """Return what waits for a reviewer until a moment behind `after_ms`, up to `until_ms`, the earliest first."""
        async with translated():
            ids = await self._redis.zrangebyscore(self._keys.inbox, f"({after_ms}", until_ms, start=0, num=limit)
        return [_id_of(one) for one in ids]

    async def everything(self) -> list[str]:
        """Return all that anybody will ever look at, the earliest first."""
        async with translated():
            ids = await self._redis.zrange(self._keys.schedule, 0, -1)
        return [_id_of(one) for one in ids]

    async def forget(self, suspension_id: str) -> None:
        """Take an id off whose record is gone; any other comes off in its own commit."""
        async with translated():
            await self._redis.zrem(self._keys.schedule, suspension_id)

    async def defer(self, suspension_id: str, due_at_ms: int) -> None:
        """Look later at a record that cannot be read, so that it does not hold up the others."""
        async with translated():
            await self._redis.zadd(self._keys.schedule, {suspension_id: due_at_ms}, xx=True)

    async def queued_since_ms(self) -> int | None:
        """Return when the first of those that are ready was put there; None when none is, or nobody can tell."""
        async with translated():
            first: Any = await self._redis.lindex(self._keys.ready, 0)
        return _read_since(first)

    async def take(self, timeout_s: float, limit: int = 1) -> list[Ready]:
        """Wait for the next suspensions that are ready to be driven, the oldest first; empty when none came in time."""
        async with translated():
            ready = self._keys.ready
            taken = await self._taking.ask("BLMPOP", f"{timeout_s:g}", 1, ready, "LEFT", "COUNT", limit)
        return [_read_ready(one) for one in taken[1]] if taken else []


def _read_since(raw: bytes | None) -> int | None:
    if raw is None:
        return None
    try:
        record, _, _ = unpack_record(_read_ready(raw).packed)
    except Unreadable:
        return None
    return record.receipt.enqueued_at_ms


def _read_ready(raw: bytes) -> Ready:
    name, _, packed = raw.partition(b" ")
    return Ready(name.decode(errors="replace"), packed)


def _id_of(raw: Any) -> str:
    return text(raw)
