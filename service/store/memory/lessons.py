"""The decided calls from which grants are learned, and what grants on probation would have allowed."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from redis.asyncio.client import Pipeline as Transaction

from sayso.core.records.permissions import Grant
from sayso.features.permissions.grants import name_scope
from service.store.connection.connecting import text, translated
from service.store.memory.granting import MOST_GRANTS
from service.store.memory.learning import TRIED
from service.store.tenants import TenantStore


class Place(NamedTuple):
    """The suspension and the item of a lesson, and how people decided it."""

    suspension_id: str
    item_id: str
    answer: str


class Trial(NamedTuple):
    """The calls that a grant would have allowed on probation, and how people decided them."""

    asked: int = 0
    approved: int = 0
    edited: int = 0
    denied: int = 0

    @property
    def unanswered(self) -> int:
        """The calls that nobody decided, or not yet."""
        return self.asked - self.approved - self.edited - self.denied


class Lessons:
    """The lessons of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def take_scopes(self, most: int) -> list[str]:
        """Return some of the rules for agents that have new lessons, and forget that they do."""
        async with translated():
            scopes: Any = await self._redis.spop(self._keys.learning, most)
        return sorted(map(text, scopes))

    async def list_items(self, scope: str) -> list[Place]:
        """Return where each lesson is found, the earliest first."""
        async with translated():
            entries: Any = await self._redis.lrange(self._keys.lessons(scope), 0, -1)
        return [Place(*text(entry).split(" ", 2)) for entry in entries]

    async def list_learned(self) -> list[Grant]:
        """Return all learned grants of the last month."""
        async with translated():
            stored = await self._redis.hgetall(self._keys.grants)
        read = (self._readings.read_other(Grant, raw, f"grant {text(name)}") for name, raw in stored.items())
        return [grant for grant in read if grant is not None and grant.learned is not None]

    async def suspend(self, grants: Iterable[Grant]) -> None:
        """Save suspended grants."""
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            for grant in grants:
                pipe.hset(self._keys.grants, grant.id, grant.model_dump_json())
                pipe.zrem(self._keys.grants_of(name_scope(grant.rule_id, grant.agent)), grant.id)
            await pipe.execute()

    async def propose(self, grant: Grant) -> bool:
        """Save a new grant on probation; return False if it was proposed before, or there are too many grants."""
        keys, scope = self._keys, self._keys.grants_of(name_scope(grant.rule_id, grant.agent))

        async def write(pipe: Transaction) -> bool:
            known = await pipe.hexists(keys.grants, grant.id)
            if known or await pipe.zcard(scope) >= MOST_GRANTS:
                return False
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(keys.grants, grant.id, grant.model_dump_json())
            pipe.zadd(scope, {grant.id: grant.until_ms})
            return True

        async with translated():
            saved: bool = await self._redis.transaction(write, keys.grants, scope, value_from_callable=True)
        return saved

    async def read_trials(self, grants: Iterable[Grant]) -> dict[str, Trial]:
        """Return the trial of each learned grant, by its id."""
        learned = [grant.id for grant in grants if grant.learned is not None]
        if not learned:
            return {}
        async with translated():
            fields = [f"{grant_id} {field}" for grant_id in learned for field in TRIED]
            raws: Any = await self._redis.hmget(self._keys.grant_trials, fields)
        counts, size = [int(raw or 0) for raw in raws], len(TRIED)
        return {grant_id: Trial(*counts[place * size : (place + 1) * size]) for place, grant_id in enumerate(learned)}
