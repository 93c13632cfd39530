"""Freezes in force or still needed, and the mark: the latest server time that a clock confirmed."""

from dataclasses import dataclass

from sayso.core.clock import monotonic_ms
from sayso.core.records.freezes import ClockReading, Freeze
from sayso.core.records.terms import LONGEST_WAIT_S
from service.core.store.connection.connecting import as_ms, name_shared
from service.core.store.keys import CHANGES
from service.core.store.suspensions.reading import name_stored
from service.core.store.tenants import StorePart

_KEPT_MS = 2 * LONGEST_WAIT_S * 1000


@dataclass(frozen=True)
class Kept:
    """All freezes as of `at_ms`, the oldest first, and the mark; 0 before the first reading.

    All sinks have the checkpoints up to `delivered_ms`.
    """

    freezes: tuple[Freeze, ...] = ()
    mark_ms: int = 0
    at_ms: int = 0
    delivered_ms: int = 0


class FreezeStore(StorePart):
    """The freezes of one tenant."""

    async def now_ms(self) -> int:
        return as_ms(*await self._redis.time())

    async def load(self) -> Kept:
        """Return the freezes and the mark, and note the server's time for changes that begin without a read."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(self._keys.freezes)
            pipe.hmget(self._keys.clock, "mark", "delivered")
            pipe.time()
            raws, (mark, delivered), time = await pipe.execute()
        at_ms = as_ms(*time)
        self._store.connections.time_read = (at_ms, monotonic_ms())
        reason = "A freeze in the store cannot be read. Run the version of Sayso that wrote it."
        freezes = []
        for raw in raws.values():
            name = name_stored("freeze", raw)
            read = self._readings.read_other(Freeze, raw, name)  # an unreadable one may hold anything
            freezes.append(read or Freeze(id=name, scope="all", reason=reason, by="desk", at_ms=at_ms))
        return Kept(
            tuple(sorted(freezes, key=lambda freeze: (freeze.at_ms, freeze.id))),
            int(mark or 0),
            at_ms,
            int(delivered or 0),
        )

    async def save(self, freeze: Freeze, mark_ms: int | None = None) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(self._keys.freezes, freeze.id, freeze.model_dump_json())
            if mark_ms is not None:
                pipe.hset(self._keys.clock, "mark", mark_ms)
            pipe.publish(name_shared(self._redis, CHANGES + self._keys.tenant), "")  # open pages show what is frozen
            await pipe.execute()

    async def load_reading(self) -> ClockReading | None:
        raw = await self._redis.hget(self._keys.clock, "beat")
        return ClockReading.model_validate_json(raw) if raw is not None else None

    async def save_reading(self, reading: ClockReading, mark_ms: int) -> None:
        await self._redis.hset(self._keys.clock, mapping={"beat": reading.model_dump_json(), "mark": mark_ms})

    async def forget_old(self, now_ms: int) -> None:
        """Delete freezes that ended so long ago that nothing they held can wait."""
        kept = (await self.load()).freezes
        old = [freeze.id for freeze in kept if freeze.unfrozen_at_ms and freeze.unfrozen_at_ms < now_ms - _KEPT_MS]
        if old:
            await self._redis.hdel(self._keys.freezes, *old)
