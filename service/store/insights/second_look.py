"""Calls that wait for a second look: drawn by the clock from the facts of commits, and open until one is taken."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sayso.core.records.items import draw
from service.store.connection.connecting import text, translated
from service.store.insights.event_facts import Candidate, name_call
from service.store.suspensions.sampling import Sampling
from service.store.tenants import TenantStore


class Waiting(NamedTuple):
    """A call that was drawn; `at_ms` is when it was allowed or decided."""

    run_id: str
    seq: int
    at_ms: int


class SecondLook:
    """The calls of one tenant that wait for a second look, the oldest first."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._sampling = Sampling(store)

    async def add_drawn(self, candidates: Sequence[Candidate], at_ms: int) -> None:
        """Draw candidates by HMAC of "<tenant> <run> <number of the event>", and add those that are drawn."""
        if not candidates:
            return
        key = await self._sampling.read_secret()
        named = ((call, f"{self._keys.tenant} {call.run_id} {call.seq}") for call in candidates)
        members = {name_call(call.run_id, call.seq): at_ms for call, name in named if draw(key, name, call.share)}
        if members:
            async with translated():
                await self._redis.zadd(self._keys.second_look, members)

    async def list_waiting(self, limit: int) -> list[Waiting]:
        """Return the calls that have waited longest."""
        async with translated():
            members: list[Any] = await self._redis.zrange(self._keys.second_look, 0, limit - 1, withscores=True)
        parts = ((text(member).rpartition(" "), int(at_ms)) for member, at_ms in members)
        return [Waiting(run_id, int(seq), at_ms) for (run_id, _, seq), at_ms in parts]

    async def count(self) -> int:
        async with translated():
            return int(await self._redis.zcard(self._keys.second_look))

    async def waits(self, run_id: str, seq: int) -> bool:
        """Return whether this call waits for a second look."""
        async with translated():
            return await self._redis.zscore(self._keys.second_look, name_call(run_id, seq)) is not None

    async def remove(self, run_id: str, seq: int) -> None:
        """Remove a call that no longer needs one."""
        async with translated():
            await self._redis.zrem(self._keys.second_look, name_call(run_id, seq))
