"""What all processes share by name: limits on attempts to guess a secret, Idempotency-Keys, and leases."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from sayso.core.clock import now_ms
from sayso.errors import IdempotencyConflict, TooManyRequests
from service.core.store.connection.connecting import name_shared, text, translated
from service.core.store.keys import ATTEMPTS
from service.core.store.suspensions.commits import IDEMPOTENCY_MS, Idempotency
from service.core.store.tenants import StorePart


@dataclass(frozen=True)
class Allowance:
    """How many attempts of one kind one client has within `window_s`."""

    kind: str
    most: int
    window_s: int


class Attempts:
    """Counts of attempts, by kind and client."""

    def __init__(self, redis: Redis) -> None:
        # The library requires a URL beside the pool, and its types omit this option.
        options: Any = {"connection_pool": redis.connection_pool}
        self._begin = name_shared(redis, ATTEMPTS)
        storage = RedisStorage("async+redis://", implementation="redispy", key_prefix=self._begin, **options)
        self._window = MovingWindowRateLimiter(storage)
        self._redis = redis

    async def count(self, allowance: Allowance, who: str) -> None:
        """Count one attempt; raises `TooManyRequests` over the limit."""
        item, name = _item_of(allowance), _hash(who)
        async with translated():
            if await self._window.hit(item, name):
                return
            stats = await self._window.get_window_stats(item, name)
        wait_s = max(1, round(stats.reset_time - now_ms() / 1000))
        raise TooManyRequests(f"Too many attempts; try again in {wait_s} s.", retry_after_s=wait_s)

    async def take_back(self, allowance: Allowance, who: str) -> None:
        """Take back the latest attempt, which was none."""
        await self._redis.lpop(f"{self._begin}:{_item_of(allowance).key_for(_hash(who))}")

    async def forget(self, allowance: Allowance, who: str) -> None:
        async with translated():
            await self._window.clear(_item_of(allowance), _hash(who))


def _item_of(allowance: Allowance) -> RateLimitItemPerSecond:
    return RateLimitItemPerSecond(allowance.most, allowance.window_s, allowance.kind)


def _hash(who: str) -> str:
    """Return a digest, so that no input becomes part of a key."""
    return sha256(who.encode(errors="replace")).hexdigest()[:32]


class Replays(StorePart):
    """Recall a key before the operation and save it afterwards, so that a refused request saves nothing."""

    async def recall(self, seen: Idempotency) -> str | None:
        """Return the earlier result of this key, or None; raises `IdempotencyConflict` for another request."""
        raw = await self._redis.get(self._keys.idempotency(seen.actor, seen.key))
        if raw is None:
            return None
        _, fingerprint, ref = text(raw).split("|", 2)
        if fingerprint != seen.fingerprint:
            raise IdempotencyConflict(idempotency_key=seen.key)
        return ref

    async def remember(self, seen: Idempotency) -> None:
        key = self._keys.idempotency(seen.actor, seen.key)
        await self._redis.set(key, f"1|{seen.fingerprint}|{seen.ref}", px=IDEMPOTENCY_MS, nx=True)


LEASE_MS = 15_000  # how long a lease is held without renewal; after a crash another process takes over


class NamedLeases(StorePart):
    """Leases of one tenant's processes, by name."""

    async def hold(self, name: str, holder: str, lease_ms: int = LEASE_MS) -> bool:
        """Take the lease, or renew one's own; False while another process holds it."""
        key = self._keys.lease(name)

        async def renew(pipe: Pipeline) -> bool:
            held = await pipe.get(key)
            mine = held is None or text(held) == holder
            pipe.multi()  # type: ignore[no-untyped-call]
            if mine:
                pipe.set(key, holder, px=lease_ms)
            return mine

        if await self._redis.set(key, holder, nx=True, px=lease_ms):
            return True
        return bool(await self._redis.transaction(renew, key, value_from_callable=True))

    async def release(self, name: str, holder: str) -> None:
        """Give up one's own lease; that of another process stays."""
        key = self._keys.lease(name)

        async def delete(pipe: Pipeline) -> None:
            held = await pipe.get(key)
            pipe.multi()  # type: ignore[no-untyped-call]
            if held is not None and text(held) == holder:
                pipe.delete(key)

        await self._redis.transaction(delete, key)
