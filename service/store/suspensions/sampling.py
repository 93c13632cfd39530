"""The secret that draws items for second looks, and the draw."""

import secrets
from collections.abc import Sequence
from typing import Any

from sayso.records.items import ItemDraft, draw_samples
from service.store.connection.connecting import translated
from service.store.tenants import TenantStore

_SECRET_BYTES = 32


class Sampling:
    """The draw of one tenant. The secret is made when it is first needed, and never changes."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._secret = b""

    async def draw(
        self, drafts: Sequence[ItemDraft], suspension_id: str, item_ids: Sequence[str] | None = None
    ) -> Sequence[ItemDraft]:
        """Return the drafts, with one more approval for those that are drawn; their ids are i1, i2, … by default."""
        if all(draft.terms.sample is None or draft.terms.sample.before is None for draft in drafts):
            return drafts
        ids = item_ids or [f"i{place}" for place in range(1, len(drafts) + 1)]
        return draw_samples(drafts, await self.read_secret(), f"{self._keys.tenant} {suspension_id}", ids)

    async def read_secret(self) -> bytes:
        """Return the secret, the same in every process of the tenant."""
        if not self._secret:
            async with translated():
                await self._redis.set(self._keys.sampling, secrets.token_bytes(_SECRET_BYTES), nx=True)
                found: Any = await self._redis.get(self._keys.sampling)
            self._secret = bytes(found)
        return self._secret
