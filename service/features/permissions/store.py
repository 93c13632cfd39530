"""Grants and mandates of one tenant. One whose people may no longer decide lets nothing run."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

from redis.asyncio.client import Pipeline as Transaction

from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.readings import Readings
from sayso.core.records.permissions import Grant
from service.core.store.connection.connecting import as_ms, text, translated
from service.core.store.keys import CHANGES
from service.core.store.permissions import Kept, Kind
from service.core.store.tenants import TenantStore
from service.features.permissions.lessons import TRIED

_KEPT_MS = 30 * DAY_MS
_MAX_LISTED = 1_000


class Use(NamedTuple, Generic[Kept]):
    """A grant or mandate, and what its calls used: how many, their total in millionths, the last one's time or None."""

    grant: Kept
    calls: int
    total: int
    last_ms: int | None


class GrantStore(Generic[Kept]):
    """The grants, or the mandates, of one tenant."""

    def __init__(self, store: TenantStore, recall: Callable[..., Any], kind: Kind[Kept]) -> None:
        self._redis, self._keys, self._recall = store.redis, store.keys, recall
        self._readings = store.readings
        self._kind, self._all = kind, kind.find_all(store.keys)

    async def now_ms(self) -> int:
        async with translated():
            return as_ms(*await self._redis.time())

    async def find(self, grant_id: str) -> Kept | None:
        """Return the one with this id, or None; raises `Unreadable` for one of a later version."""
        async with translated():
            raw = await self._redis.hget(self._all, grant_id)
        return self._readings.require_other(self._kind.model, raw, self._name(grant_id)) if raw else None

    def _name(self, grant_id: str) -> str:
        return f"{self._kind.model.__name__.lower()} {grant_id}"

    async def _list_readable(self) -> list[Kept]:
        async with translated():
            stored = await self._redis.hgetall(self._all)
        read = (self._readings.read_other(self._kind.model, raw, self._name(text(id_))) for id_, raw in stored.items())
        return [grant for grant in read if grant is not None]

    async def list_uses(self) -> list[Use[Kept]]:
        """Return those of the last month with their use, the latest first."""
        kept = sorted(await self._list_readable(), key=lambda grant: (-grant.at_ms, grant.id))
        return await self.add_uses(kept[:_MAX_LISTED])

    async def add_uses(self, kept: Sequence[Kept]) -> list[Use[Kept]]:
        """Return them with their use."""
        if not kept:
            return []
        async with translated():
            used: Any = await self._redis.zmscore(self._keys.grant_uses, [grant.id for grant in kept])
        held: Readings = await self._recall([counter for grant in kept for counter in self._kind.list_counters(grant)])
        sums = {name: reading.total for name, reading in held.items()}
        return [
            Use(grant, sums[grant.count_counter], sums.get(grant.sum_counter, 0), None if last is None else int(last))
            for grant, last in zip(kept, used, strict=True)
        ]

    async def change(self, grant_id: str, change: Callable[[Kept], Kept]) -> Kept | None:
        """Change one atomically and return it, or None if the id is unknown. A revoked one is in force no more."""
        key, model = self._all, self._kind.model

        async def write(pipe: Transaction) -> Kept | None:
            raw: Any = await pipe.hget(key, grant_id)
            if raw is None:
                return None
            known = self._readings.require_other(model, raw, self._name(grant_id))
            changed = change(known)
            pipe.multi()  # type: ignore[no-untyped-call]
            if changed != known:
                pipe.hset(key, grant_id, changed.model_dump_json())
                pipe.publish(CHANGES + self._keys.tenant, "")
            was_denied = isinstance(known, Grant) and known.denial is not None
            returns = was_denied and isinstance(changed, Grant) and changed.denial is None
            if changed.until_ms != known.until_ms or returns:
                pipe.zadd(self._find_scope(changed), {grant_id: changed.until_ms})
            if changed.revoked_at_ms is not None:
                pipe.zrem(self._find_scope(changed), grant_id)
            return changed

        async with translated():
            changed: Kept | None = await self._redis.transaction(write, key, value_from_callable=True)
        return changed

    async def forget_old(self, now_ms: int) -> None:
        """Delete those that ended a month ago, and end those whose time is over."""
        kept = await self._list_readable()
        over = [grant for grant in kept if grant.until_ms <= now_ms]
        old_ms = now_ms - _KEPT_MS
        old = [grant for grant in kept if min(grant.until_ms, grant.revoked_at_ms or grant.until_ms) < old_ms]
        if not over and not old:
            return
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            for grant in (*over, *old):
                pipe.zrem(self._find_scope(grant), grant.id)
            for grant in old:
                pipe.hdel(self._all, grant.id)
                pipe.zrem(self._keys.grant_uses, grant.id)
                pipe.hdel(self._keys.grant_trials, *(f"{grant.id} {field}" for field in TRIED))
            await pipe.execute()

    def _find_scope(self, grant: Kept) -> str:
        return self._kind.find_scope(self._keys, self._kind.name_scope(grant))
