"""The secret that draws items for second looks, and the draw."""

import secrets
from collections.abc import Sequence
from typing import Any

from sayso.core.records.items import ItemDraft, draw_samples
from sayso.core.records.suspensions import RunRef
from service.core.store.tenants import TenantStore

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
