"""Idempotency-Keys of requests without a commit of a suspension."""

from sayso.errors import IdempotencyConflict
from service.store.connection.connecting import text, translated
from service.store.suspensions.commits import IDEMPOTENCY_MS, Idempotency
from service.store.tenants import TenantStore


class Replays:
    """Recall a key before the operation and save it afterwards, so that a refused request saves nothing."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def recall(self, seen: Idempotency) -> str | None:
        """Return the earlier result of this key, or None; raises `IdempotencyConflict` for another request."""
        async with translated():
            raw = await self._redis.get(self._keys.idempotency(seen.actor, seen.key))
        if raw is None:
            return None
        _, fingerprint, ref = text(raw).split("|", 2)
        if fingerprint != seen.fingerprint:
            raise IdempotencyConflict(idempotency_key=seen.key)
        return ref

    async def remember(self, seen: Idempotency) -> None:
        """Save the result of this request for 24 hours."""
        async with translated():
            await self._redis.set(
                self._keys.idempotency(seen.actor, seen.key),
                f"1|{seen.fingerprint}|{seen.ref}",
                px=IDEMPOTENCY_MS,
                nx=True,
            )
