"""Look-ups in the indexes of runs and suspensions, without their records."""

import heapq
from collections.abc import AsyncIterator
from itertools import islice
from typing import Any

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

_PAGE = 200


class RunIndex:
    """The indexes of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def page(self, index: str, skip: int, limit: int, *, newest_first: bool) -> list[str]:
        """Return `limit` ids of a sorted index after the first `skip`."""
        async with translated():
            ids: list[Any] = await self._redis.zrange(index, skip, skip + limit - 1, desc=newest_first)
        return [text(member) for member in ids]

    async def newest(self, owner: str | None, skip: int, limit: int) -> list[str]:
        """Return the ids of one owner's runs, or of all owners' runs, the newest first."""
        if owner is not None:
            return await self.page(self._keys.runs_of(owner), skip, limit, newest_first=True)
        async with translated():
            owners = await self._redis.smembers(self._keys.owners)
            async with self._redis.pipeline(transaction=False) as pipe:
                for name in owners:
                    pipe.zrange(self._keys.runs_of(text(name)), 0, skip + limit - 1, desc=True, withscores=True)
                pages = await pipe.execute()
        merged = heapq.merge(*pages, key=lambda entry: -entry[1])
        return [text(entry[0]) for entry in islice(merged, skip, skip + limit)]

    async def pages_of(self, owner: str) -> AsyncIterator[list[str]]:
        """Yield the ids of the owner's runs in pages, the newest first."""
        skip = 0
        while ids := await self.page(self._keys.runs_of(owner), skip, _PAGE, newest_first=True):
            yield ids
            skip += _PAGE

    async def latest(self, run_ids: list[str]) -> list[str]:
        """Return the id of each run's latest suspension; an empty one for a deleted run."""
        async with translated():
            latest = await self._redis.mget([self._keys.run(run_id) for run_id in run_ids])
        return [text(raw or b"") for raw in latest]

    async def scores(self, index: str, ids: list[str]) -> list[float | None]:
        """Return the score of each id in a sorted index, None for an absent one."""
        async with translated():
            scores: list[float | None] = await self._redis.zmscore(index, ids) if ids else []
        return scores

    async def among(self, index: str, ids: list[str]) -> list[str]:
        """Return the ids that are in a sorted index, in the given order."""
        return [member for member, score in zip(ids, await self.scores(index, ids), strict=True) if score is not None]
