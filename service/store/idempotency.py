"""Remember what an Idempotency-Key was used for where no commit of a suspension does it."""

from sayso.errors import IdempotencyConflict
from service.store.connection.connecting import text, translated
from service.store.suspensions.commits import IDEMPOTENCY_MS, Idempotency
from service.store.tenants import TenantStore


class Replays:
    """Look before doing something, remember it afterwards: a request that was refused leaves nothing behind."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def recall(self, seen: Idempotency) -> str | None:
        """Return what the same request made before, or None; raises `IdempotencyConflict` for another request."""
        async with translated():
            raw = await self._redis.get(self._keys.idempotency(seen.actor, seen.key))
        if raw is None:
            return None
        _, fingerprint, ref = text(raw).split("|", 2)
        if fingerprint != seen.fingerprint:
            raise IdempotencyConflict(idempotency_key=seen.key)
        return ref

    async def remember(self, seen: Idempotency) -> None:
        """Keep what this request made for as long as any other key is kept."""
        async with translated():
            await self._redis.set(
                self._keys.idempotency(seen.actor, seen.key),
                f"1|{seen.fingerprint}|{seen.ref}",
                px=IDEMPOTENCY_MS,
                nx=True,
            )
