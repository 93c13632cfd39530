"""The decided calls from which grants are learned, and what grants on probation would have allowed."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from redis.asyncio.client import Pipeline as Transaction

from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.readings import name_scope
from sayso.core.records.decisions import ActorKind
from sayso.core.records.items import Item
from sayso.core.records.permissions import Grant
from sayso.core.records.suspensions import SuspensionRecord
from sayso.features.permissions.learning import Answered, read_answer
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text, translated
from service.core.store.keys import TenantKeys
from service.core.store.permissions import MOST_GRANTS
from service.core.store.tenants import TenantStore

MOST_LESSONS = 500
"""The decided calls of a rule for an agent from which grants are learned."""

_KEPT_MS = 30 * DAY_MS
ASKED = "asked"
TRIED = (ASKED, *Answered)
"""What is counted of a grant on probation."""


def note_lessons(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Save what the change teaches; most changes teach nothing."""
    for grant in update.change.suspended:
        commit.write("HSET", keys.grants, grant.id, grant.model_dump_json())
        commit.write("ZREM", keys.grants_of(name_scope(grant.rule_id, grant.agent)), grant.id)
    trials: list[str] = []
    for prior, record in update.pairs:
        for was, item in _list_teaching(prior, record):
            trials += _list_trials(was, item)
            answer = read_answer(item)
            if was is not None and was.open and not item.open and item.drill is None and answer is not None:
                scope = name_scope(item.terms.rule_id or "", record.run.agent)
                commit.write("RPUSH", keys.lessons(scope), f"{record.id} {item.item_id} {answer}")
                commit.write("LTRIM", keys.lessons(scope), -MOST_LESSONS, -1)
                commit.write("PEXPIRE", keys.lessons(scope), _KEPT_MS)
                commit.write("SADD", keys.learning, scope)
    for field, count in Counter(trials).items() if trials else ():
        commit.write("HINCRBY", keys.grant_trials, field, count)


def _list_teaching(before: SuspensionRecord | None, after: SuspensionRecord) -> Iterator[tuple[Item | None, Item]]:
    """Yield the changed items of rules that learn, each with the item before it or None."""
    earlier = before.items if before is not None else ()
    if all(item.learning is None for item in (*earlier, *after.items)):
        return
    known = {item.item_id: item for item in earlier}
    for item in after.items:
        was = known.get(item.item_id)
        if was is not item and (item.learning is not None or (was is not None and was.learning is not None)):
            yield was, item


def _list_trials(was: Item | None, item: Item) -> Iterator[str]:
    """Yield what counts for grants on probation: each call when it is asked about, and how people decided it.

    A reviewer's change of the arguments may renew an item, which then counts as edited.
    """
    if was is not None and not was.open:
        return
    before, now = _list_grants(was), _list_grants(item)
    timed_out = item.outcome is not None and item.outcome.by.kind is ActorKind.TIMEOUT
    if item.open or (was is None and timed_out):
        yield from (f"{grant_id} {ASKED}" for grant_id in now if grant_id not in before)
    answer = read_answer(item) if not item.open else None
    for grant_id in before:
        if grant_id not in now:
            yield f"{grant_id} edited"
        elif answer is not None:
            yield f"{grant_id} {answer}"


def _list_grants(item: Item | None) -> tuple[str, ...]:
    return item.learning.would_allow if item is not None and item.learning is not None else ()


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
