"""Grants and mandates of one tenant, the decided calls from which grants are learned, and trials on probation."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple

from redis.asyncio.client import Pipeline as Transaction

from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.readings import Readings, name_scope
from sayso.core.records.decisions import ActorKind
from sayso.core.records.items import Item
from sayso.core.records.permissions import Grant, GrantState
from sayso.core.records.suspensions import SuspensionRecord
from sayso.features.permissions.learning import Answered, read_answer
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import as_ms, name_shared, text
from service.core.store.keys import CHANGES, TenantKeys
from service.core.store.permissions import MOST_GRANTS, Kept, Kind
from service.core.store.tenants import TenantStore

_KEPT_MS = 30 * DAY_MS


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
        return as_ms(*await self._redis.time())

    async def find(self, grant_id: str) -> Kept | None:
        """Return the one with this id, or None; raises `Unreadable` for one of a later version."""
        raw = await self._redis.hget(self._all, grant_id)
        return self._readings.require_other(self._kind.model, raw, self._name(grant_id)) if raw else None

    def _name(self, grant_id: str) -> str:
        return f"{self._kind.model.__name__.lower()} {grant_id}"

    async def list_all(self) -> list[Kept]:
        """Return those that can be read."""
        stored = await self._redis.hgetall(self._all)
        read = (self._readings.read_other(self._kind.model, raw, self._name(text(id_))) for id_, raw in stored.items())
        return [grant for grant in read if grant is not None]

    async def list_uses(self) -> list[Use[Kept]]:
        """Return those of the last month with their use, the latest first."""
        kept = sorted(await self.list_all(), key=lambda grant: (-grant.at_ms, grant.id))
        return await self.add_uses(kept[:1_000])

    async def add_uses(self, kept: Sequence[Kept]) -> list[Use[Kept]]:
        """Return them with their use."""
        if not kept:
            return []
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
                pipe.publish(name_shared(self._redis, CHANGES + self._keys.tenant), "")
            was_denied = isinstance(known, Grant) and known.denial is not None
            returns = was_denied and isinstance(changed, Grant) and changed.denial is None
            if changed.until_ms != known.until_ms or returns:
                pipe.zadd(self._find_scope(changed), {grant_id: changed.until_ms})
            if changed.revoked_at_ms is not None:
                pipe.zrem(self._find_scope(changed), grant_id)
            return changed

        changed: Kept | None = await self._redis.transaction(write, key, value_from_callable=True)
        return changed

    async def revoke(self, grant_id: str, by: str, alive: Sequence[GrantState]) -> Kept | None:
        """End one in a state that is `alive`, and return it; None if the id is unknown."""
        now_ms = await self.now_ms()

        def end(known: Kept) -> Kept:
            ended: Any = known.model_copy(update={"revoked_by": by, "revoked_at_ms": now_ms})
            return ended if known.find_state(now_ms) in alive else known

        return await self.change(grant_id, end)

    async def forget_old(self, now_ms: int) -> None:
        """Delete those that ended a month ago, and end those whose time is over."""
        kept = await self.list_all()
        over = [grant for grant in kept if grant.until_ms <= now_ms]
        old_ms = now_ms - _KEPT_MS
        old = [grant for grant in kept if min(grant.until_ms, grant.revoked_at_ms or grant.until_ms) < old_ms]
        if not over and not old:
            return
        async with self._redis.pipeline(transaction=True) as pipe:
            for grant in (*over, *old):
                pipe.zrem(self._find_scope(grant), grant.id)
            for grant in old:
                pipe.hdel(self._all, grant.id)
                pipe.zrem(self._keys.grant_uses, grant.id)
                pipe.hdel(self._keys.grant_trials, *(f"{grant.id} {field}" for field in TRIED))
            await pipe.execute()

    def _find_scope(self, grant: Kept) -> str:
        return self._kind.find_scope(self._keys, self._kind.name_scope(grant))


MOST_LESSONS = 500  # the decided calls of a rule for an agent from which grants are learned
ASKED = "asked"
TRIED = (ASKED, *Answered)  # what is counted of a grant on probation


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
        scopes: Any = await self._redis.spop(self._keys.learning, most)
        return sorted(map(text, scopes))

    async def list_items(self, scope: str) -> list[Place]:
        entries: Any = await self._redis.lrange(self._keys.lessons(scope), 0, -1)
        return [Place(*text(entry).split(" ", 2)) for entry in entries]

    async def list_learned(self) -> list[Grant]:
        stored = await self._redis.hgetall(self._keys.grants)
        read = (self._readings.read_other(Grant, raw, f"grant {text(name)}") for name, raw in stored.items())
        return [grant for grant in read if grant is not None and grant.learned is not None]

    async def suspend(self, grants: Iterable[Grant]) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            for grant in grants:
                pipe.hset(self._keys.grants, grant.id, grant.model_dump_json())
                pipe.zrem(self._keys.grants_of(name_scope(grant.rule_id, grant.agent)), grant.id)
            await pipe.execute()

    async def propose(self, grant: Grant) -> bool:
        """Save a new grant on probation; return False if it was proposed before, or there are too many grants."""
        keys, scope = self._keys, self._keys.grants_of(name_scope(grant.rule_id, grant.agent))

        async def write(pipe: Transaction) -> bool:
            if (await pipe.hexists(keys.grants, grant.id)) or await pipe.zcard(scope) >= MOST_GRANTS:
                return False
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(keys.grants, grant.id, grant.model_dump_json())
            pipe.zadd(scope, {grant.id: grant.until_ms})
            return True

        saved: bool = await self._redis.transaction(write, keys.grants, scope, value_from_callable=True)
        return saved

    async def read_trials(self, grants: Iterable[Grant]) -> dict[str, Trial]:
        """Return the trial of each learned grant, by its id."""
        learned = [grant.id for grant in grants if grant.learned is not None]
        if not learned:
            return {}
        fields = [f"{grant_id} {field}" for grant_id in learned for field in TRIED]
        raws: Any = await self._redis.hmget(self._keys.grant_trials, fields)
        counts, size = [int(raw or 0) for raw in raws], len(TRIED)
        return {grant_id: Trial(*counts[place * size : (place + 1) * size]) for place, grant_id in enumerate(learned)}
