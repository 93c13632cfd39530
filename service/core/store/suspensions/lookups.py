"""Look-ups of several suspensions at once, and the draw of items for second looks."""

import secrets
from collections.abc import Sequence
from typing import Any

from sayso.core.records.items import ItemDraft, draw_samples
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from service.core.store.suspensions.reading import UnreadableRecord
from service.core.store.tenants import StorePart, TenantStore


class SuspensionLookups(StorePart):
    """Reads of the suspensions of one tenant, by id and by run."""

    async def read_many(self, suspension_ids: list[str]) -> list[SuspensionRecord]:
        """Return the suspensions that exist and are readable, in the given order."""
        return [record for record in await self.read_page(suspension_ids) if isinstance(record, SuspensionRecord)]

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


_SECRET_BYTES = 32


class Sampling:
    """The draw of one tenant. The secret is made when it is first needed, and never changes."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._secret = b""

    async def draw(self, drafts: Sequence[ItemDraft], run: RunRef) -> Sequence[ItemDraft]:
        """Return the drafts of a run, with one more approval for those that are drawn."""
        if all(draft.terms.sample is None or draft.terms.sample.before is None for draft in drafts):
            return drafts
        return draw_samples(drafts, await self.read_secret(), (self._keys.tenant, run.owner, run.agent))

    async def read_secret(self) -> bytes:
        if not self._secret:
            await self._redis.set(self._keys.sampling, secrets.token_bytes(_SECRET_BYTES), nx=True)
            secret: Any = await self._redis.get(self._keys.sampling)
            self._secret = bytes(secret)
        return self._secret
