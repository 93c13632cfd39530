"""The schedule and the ready list. Both are hints: every transition checks the record again."""

from dataclasses import dataclass
from typing import Any

from sayso.errors import Unreadable
from service.store.connection.connecting import as_ms, text, translated
from service.store.connection.pipeline import Script
from service.store.suspensions.packing import unpack_record
from service.store.tenants import TenantStore

_WRITING = Script("#!lua\nreturn redis.call('TIME')")  # a server that accepts no writes refuses it


@dataclass(frozen=True)
class Ready:
    """A suspension that a worker may lease, and its packed record."""

    id: str
    packed: bytes


class Schedule:
    """Suspensions by due time, and those that are ready for workers."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._taking = store.connections.ready

    async def now_ms(self) -> int:
        async with translated():
            return as_ms(*await self._redis.time())

    async def writing_ms(self) -> int:
        """Return the store server's time if it accepts writes; raises `Unavailable`. Writes nothing."""
        async with translated():
            return as_ms(*await self._taking.run(_WRITING, []))

    async def due(self, now_ms: int, limit: int = 500) -> list[str]:
        """Return due suspensions, the most overdue first."""
        async with translated():
            ids: list[Any] = await self._redis.zrangebyscore(self._keys.schedule, "-inf", now_ms, start=0, num=limit)
        return [text(one) for one in ids]

    async def deadlines(self, after_ms: int, until_ms: int, limit: int) -> list[str]:
        """Return pending suspensions with a deadline after `after_ms` and up to `until_ms`, the earliest first."""
        async with translated():
            ids: list[Any] = await self._redis.zrangebyscore(
                self._keys.inbox, f"({after_ms}", until_ms, start=0, num=limit
            )
        return [text(one) for one in ids]

    async def everything(self) -> list[str]:
        """Return all scheduled suspensions, the earliest first."""
        async with translated():
            ids: list[Any] = await self._redis.zrange(self._keys.schedule, 0, -1)
        return [text(one) for one in ids]

    async def forget(self, suspension_id: str) -> None:
        """Remove an id whose record is gone; a commit removes any other."""
        async with translated():
            await self._redis.zrem(self._keys.schedule, suspension_id)

    async def defer(self, suspension_id: str, due_at_ms: int) -> None:
        """Postpone an unreadable record, so that it does not delay the others."""
        async with translated():
            await self._redis.zadd(self._keys.schedule, {suspension_id: due_at_ms}, xx=True)

    async def count_queued(self) -> int:
        async with translated():
            return int(await self._redis.llen(self._keys.ready))

    async def queued_since_ms(self) -> int | None:
        """Return when the first entry of the ready list was added; None if it is empty or unreadable."""
        async with translated():
            first: Any = await self._redis.lindex(self._keys.ready, 0)
        if first is None:
            return None
        try:
            record, _, _ = unpack_record(_read_ready(first).packed)
        except Unreadable:
            return None
        return record.receipt.enqueued_at_ms

    async def take(self, timeout_s: float, limit: int = 1) -> list[Ready]:
        """Wait for ready suspensions, the oldest first; empty after the timeout."""
        async with translated():
            taken = await self._taking.ask("BLMPOP", f"{timeout_s:g}", 1, self._keys.ready, "LEFT", "COUNT", limit)
        return [_read_ready(one) for one in taken[1]] if taken else []


def _read_ready(raw: bytes) -> Ready:
    name, _, packed = raw.partition(b" ")
    return Ready(name.decode(errors="replace"), packed)
