"""Look-ups of several suspensions at once."""

from typing import Any

from sayso.core.records.suspensions import SuspensionRecord
from service.core.store.suspensions.reading import UnreadableRecord
from service.core.store.tenants import StorePart


class SuspensionLookups(StorePart):
    """Reads of the suspensions of one tenant, by id and by run."""

    async def read_many(self, suspension_ids: list[str]) -> list[SuspensionRecord]:
        """Return the suspensions that exist and are readable, in the given order."""
        records = await self.read_page(suspension_ids)
        return [record for record in records if isinstance(record, SuspensionRecord)]

    async def read_page(self, suspension_ids: list[str]) -> list[SuspensionRecord | UnreadableRecord]:
        """Return the suspensions that exist, in the given order, and name unreadable ones."""
        if not suspension_ids:
            return []
        raws: list[Any] = await self._redis.mget([self._keys.suspension(id_) for id_ in suspension_ids])
        return await self._readings.read_several(suspension_ids, raws)

    async def read_chain(self, suspension_id: str, limit: int) -> list[SuspensionRecord | UnreadableRecord]:
        """Return up to `limit` suspensions that end with this one, the oldest first, from an unreadable one on."""
        records: list[SuspensionRecord | UnreadableRecord] = []
        before: str | None = suspension_id
        while before is not None and len(records) < limit:
            page = await self.read_page([before])
            records += page
            before = page[0].previous_id if page and isinstance(page[0], SuspensionRecord) else None
        return records[::-1]
