"""Groups of reviewers, and an index of the groups of each person."""

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict
from redis.asyncio.client import Pipeline

from sayso.core.calendar import WorkingHours
from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore


class Group(BaseModel):
    """Reviewers under one name, which rules write as `group:<name>`. Admins and editors change the members."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    members: tuple[str, ...] = ()
    editors: tuple[str, ...] = ()
    working_hours: WorkingHours | None = None
    created_at_ms: int


class GroupStore:
    """The groups of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def find(self, name: str) -> Group | None:
        """Return the group with this name, or None."""
        async with translated():
            raw = await self._redis.hget(self._keys.groups, name)
        return self._readings.read_other(Group, raw, f"group {name}") if raw else None

    async def list_all(self) -> list[Group]:
        """Return all groups by name."""
        async with translated():
            stored = await self._redis.hgetall(self._keys.groups)
        groups = (self._readings.read_other(Group, raw, f"group {text(name)}") for name, raw in stored.items())
        return sorted((group for group in groups if group is not None), key=lambda group: group.name)

    async def change(self, name: str, change: Callable[[Group | None], Group | None]) -> Group | None:
        """Create, change or delete a group atomically, with the index of its members; return it as saved."""
        key = self._keys.groups

        async def write(pipe: Pipeline) -> Group | None:
            raw = await pipe.hget(key, name)
            known = self._readings.require_other(Group, raw, f"group {name}") if raw else None
            changed = change(known)
            before, after = (frozenset(group.members if group is not None else ()) for group in (known, changed))
            pipe.multi()  # type: ignore[no-untyped-call]
            if changed is None:
                pipe.hdel(key, name)
            else:
                pipe.hset(key, name, changed.model_dump_json())
            for member in before - after:
                pipe.srem(self._keys.groups_of(member), name)
            for member in after - before:
                pipe.sadd(self._keys.groups_of(member), name)
            return changed

        async with translated():
            saved: Group | None = await self._redis.transaction(write, key, value_from_callable=True)
        return saved
