"""Grants of one tenant. One whose people may no longer decide lets nothing run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from redis.asyncio.client import Pipeline as Transaction

from sayso.clock import DAY_MS
from sayso.policy.grants.scopes import list_counters, name_scope
from sayso.policy.memory.recalling import Readings
from sayso.records.decisions import Actor
from sayso.records.memory.grants import Grant, GrantState
from service.store.connection.connecting import as_ms, text, translated
from service.store.connection.pipeline import Pipeline, Script
from service.store.directory.groups import Group
from service.store.keys import CHANGES, TenantKeys
from service.store.lua import read_script
from service.store.memory.learning import TRIED
from service.store.people import Reviewer
from service.store.tenants import TenantStore

_GRANTS = Script(read_script("grants"))
_KEPT_MS = 30 * DAY_MS
_MAX_LISTED = 1_000


class Use(NamedTuple):
    """A grant with what its calls have used: how many, their total in millionths, and the last one's time or None."""

    grant: Grant
    calls: int
    total: int
    last_ms: int | None


async def read_grants(pipeline: Pipeline, keys: TenantKeys, scopes: Sequence[str]) -> Mapping[str, tuple[Grant, ...]]:
    """Return the grants in force by scope, and those on probation, without those whose people may no longer decide."""
    async with translated():
        seconds, micros, *found = await pipeline.run(_GRANTS, [keys.grants, *map(keys.grants_of, scopes)])
    now_ms = as_ms(seconds, micros)
    current = {scope: _read_current(held, now_ms) for scope, held in zip(scopes, found, strict=True)}
    granters = [by for held in current.values() for one in held for by in one.granters]
    entitled = await _find_entitled(pipeline, keys, granters) if granters else set()
    return {scope: tuple(one for one in held if entitled.issuperset(one.granters)) for scope, held in current.items()}


def _read_current(held: Iterable[Any], now_ms: int) -> list[Grant]:
    found = (Grant.model_validate_json(raw) for raw in held if raw)
    return [one for one in found if one.find_state(now_ms) is GrantState.IN_FORCE or one.tries(now_ms)]


async def _find_entitled(pipeline: Pipeline, keys: TenantKeys, granters: Iterable[Actor]) -> set[Actor]:
    """Return those who are active reviewers, and members of a group if one entitled them."""
    people = list(dict.fromkeys(granters))
    names = list(dict.fromkeys(name for by in people for name in (by.id, by.for_person) if name))
    groups = list(dict.fromkeys(group for by in people for group in by.groups))
    async with translated():
        reviewers = await pipeline.ask("HMGET", keys.reviewers, *names)
        kept = await pipeline.ask("HMGET", keys.groups, *groups) if groups else []
    active = {one.name for one in map(_read_reviewer, reviewers) if one is not None and one.active}
    members = {group.name: set(group.members) for group in (Group.model_validate_json(raw) for raw in kept if raw)}
    return {by for by in people if _is_entitled(by, active, members)}


def _read_reviewer(raw: Any) -> Reviewer | None:
    return Reviewer.model_validate_json(raw) if raw else None


def _is_entitled(by: Actor, active: set[str], members: Mapping[str, set[str]]) -> bool:
    person = by.for_person or by.id
    if not {by.id, person} <= active:
        return False
    return not by.groups or any(person in members.get(group, ()) for group in by.groups)


class GrantStore:
    """The grants of one tenant."""

    def __init__(self, store: TenantStore, recall: Callable[..., Any]) -> None:
        self._redis, self._keys, self._recall = store.redis, store.keys, recall

    async def now_ms(self) -> int:
        async with translated():
            return as_ms(*await self._redis.time())

    async def find(self, grant_id: str) -> Grant | None:
        """Return the grant with this id, or None."""
        async with translated():
            raw = await self._redis.hget(self._keys.grants, grant_id)
        return Grant.model_validate_json(raw) if raw else None

    async def list_uses(self) -> list[Use]:
        """Return the grants of the last month with their use, the latest first."""
        async with translated():
            found = await self._redis.hvals(self._keys.grants)
            used: Any = await self._redis.zrange(self._keys.grant_uses, 0, -1, withscores=True)
        grants = sorted(map(Grant.model_validate_json, found), key=lambda one: (-one.at_ms, one.id))[:_MAX_LISTED]
        last = {text(name): int(at_ms) for name, at_ms in used}
        held: Readings = await self._recall([counter for one in grants for counter in list_counters(one)])
        totals = {name: reading.total for name, reading in held.items()}
        return [Use(one, totals[one.count_counter], totals.get(one.sum_counter, 0), last.get(one.id)) for one in grants]

    async def change(self, grant_id: str, change: Callable[[Grant], Grant]) -> Grant | None:
        """Change a grant atomically and return it, or None if the id is unknown. A revoked one is in force no more."""
        key = self._keys.grants

        async def write(pipe: Transaction) -> Grant | None:
            raw: Any = await pipe.hget(key, grant_id)
            if raw is None:
                return None
            known = Grant.model_validate_json(raw)
            changed = change(known)
            pipe.multi()  # type: ignore[no-untyped-call]
            if changed != known:
                pipe.hset(key, grant_id, changed.model_dump_json())
                pipe.publish(CHANGES + self._keys.tenant, "")
            if changed.until_ms != known.until_ms:
                pipe.zadd(
                    self._keys.grants_of(name_scope(changed.rule_id, changed.agent)), {grant_id: changed.until_ms}
                )
            if changed.revoked_at_ms is not None:
                pipe.zrem(self._keys.grants_of(name_scope(changed.rule_id, changed.agent)), grant_id)
            return changed

        async with translated():
            changed: Grant | None = await self._redis.transaction(write, key, value_from_callable=True)
        return changed

    async def forget_old(self, now_ms: int) -> None:
        """Delete grants that ended a month ago."""
        async with translated():
            kept = [Grant.model_validate_json(raw) for raw in await self._redis.hvals(self._keys.grants)]
            old = [one for one in kept if min(one.until_ms, one.revoked_at_ms or one.until_ms) < now_ms - _KEPT_MS]
            if not old:
                return
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.hdel(self._keys.grants, *(one.id for one in old))
                pipe.zrem(self._keys.grant_uses, *(one.id for one in old))
                pipe.hdel(self._keys.grant_trials, *(f"{one.id} {field}" for one in old for field in TRIED))
                for one in old:
                    pipe.zrem(self._keys.grants_of(name_scope(one.rule_id, one.agent)), one.id)
                await pipe.execute()
