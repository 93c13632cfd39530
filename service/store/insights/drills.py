"""The latest drills of each person, and when the next one is planted."""

from collections.abc import Sequence
from typing import Any

from sayso.core.clock import DAY_MS
from service.store.connection.connecting import text, translated
from service.store.insights.facts import PersonFact
from service.store.tenants import TenantStore

_KEPT = 100
_KEPT_MS = 180 * DAY_MS


class DrillResults:
    """Whether one tenant's people approved the false calls of drills. A decision added again changes nothing."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def add(self, name: str, decisions: Sequence[tuple[PersonFact, int]]) -> None:
        """Add decisions on drills, each with its time, and forget the oldest."""
        key = self._keys.drilled(name)
        members = {f"{fact.decision_id}|{int(fact.approved)}": at_ms for fact, at_ms in decisions}
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.zadd(key, members)
            pipe.zremrangebyrank(key, 0, -_KEPT - 1)
            pipe.pexpire(key, _KEPT_MS)
            await pipe.execute()

    async def read(self, names: Sequence[str]) -> dict[str, tuple[bool, ...]]:
        """Return for each person whether they approved each drill, the oldest first."""
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.zrange(self._keys.drilled(name), 0, -1)
            replies: list[Any] = await pipe.execute()
        return {
            name: tuple(text(member).endswith("|1") for member in members)
            for name, members in zip(names, replies, strict=True)
        }

    async def take_turn(self, every_ms: int) -> bool:
        """Return whether a drill is due: once in `every_ms`, however many clocks ask."""
        async with translated():
            return bool(await self._redis.set(self._keys.next_drill, 1, nx=True, px=every_ms))
