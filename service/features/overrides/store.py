"""The suspensions of one tenant by the time at which they were decided."""

from collections.abc import AsyncIterator
from typing import Any

from service.core.store.connection.connecting import text
from service.core.store.tenants import StorePart

_PAGE = 200


class DecidedIndex(StorePart):
    """The index of suspensions that are no longer pending."""

    async def list_pages(self, begin_ms: int, end_ms: int) -> AsyncIterator[list[str]]:
        """Yield the ids of those that were decided from one time and before another in pages, the first first."""
        after_ms, known = begin_ms, list[str]()  # those of one millisecond may be on several pages
        while page := await self._read(after_ms, end_ms, len(known) + _PAGE):
            if fresh := [id_ for id_, _ in page if id_ not in known]:
                yield fresh
            if len(page) < len(known) + _PAGE:
                return
            after_ms = page[-1][1]
            known = [id_ for id_, at_ms in page if at_ms == after_ms]

    async def _read(self, begin_ms: int, end_ms: int, limit: int) -> list[tuple[str, int]]:
        found: Any = await self._redis.zrangebyscore(
            self._keys.decided, begin_ms, f"({end_ms}", 0, limit, withscores=True
        )
        return [(text(id_), int(at_ms)) for id_, at_ms in found]
