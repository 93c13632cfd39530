"""Connections of one process to its store, and the share of one tenant in them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from itertools import cycle, islice
from math import inf
from typing import Any, NamedTuple, Protocol

from redis.asyncio import Redis

from sayso.core.policy.counters.readings import Readings as CounterReadings
from sayso.core.policy.counters.readings import Wanted
from sayso.core.policy.engine import Policy
from sayso.core.records.decisions import Actor, Decision, DecisionRequest
from sayso.core.records.events import TrailEntry
from sayso.core.records.items import Item
from sayso.core.records.permissions import Grant, Mandate
from sayso.core.records.proofs import Proof
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.errors import StepUpRequired, Unreadable
from service.core.cache import Refresher
from service.core.store.connection.commits import Commit, Observer, Update, Writer
from service.core.store.connection.connecting import as_ms, macs_of, texts
from service.core.store.connection.pipeline import Pipeline
from service.core.store.connection.sealing import Keyring, Sealer
from service.core.store.keys import keys_of
from service.core.store.loss.commit_counts import CommitCounts
from service.core.store.loss.confirming import Confirmer
from service.core.store.loss.start_log import StartLog
from service.core.store.lua import read_script
from service.core.store.suspensions.reading import Readings

_BATCH_PIPELINES = 4  # the server reads about 16 kB from each between two writes to its disk


class Connections:
    """The connections of one process, shared by all tenants. Each connects on first use."""

    def __init__(self, redis: Redis, refresher: Refresher | None = None, keyring: Keyring | None = None) -> None:
        self.redis, self.macs = redis, macs_of(redis)
        self.keyring = keyring or Keyring()
        self.refresher = refresher or Refresher()  # of the caches that read through these connections
        self.time_read = (0, -inf)  # the server's last known time, ms, and the monotonic time of that reading
        self.changes = Pipeline(redis)
        self.intake = Pipeline(redis)
        self.ready = Pipeline(redis)
        self.confirming = Pipeline(redis)
        self.batches = cycle([Pipeline(redis) for _ in range(_BATCH_PIPELINES)])

    def close(self) -> None:
        """Close the connections, except the pool of `redis`, and refresh no more caches."""
        self.refresher.stop()
        own = (self.changes, self.intake, self.ready, self.confirming)
        for pipeline in (*own, *islice(self.batches, _BATCH_PIPELINES)):
            pipeline.close()


class EndedRun(NamedTuple):
    """An ended run whose contents one commit erases; `trail` has its events. A run that is deleted has no trail."""

    run_id: str
    trail: Sequence[TrailEntry] = ()
    erased: bool = False


Deletion = Callable[["TenantStore", EndedRun], Awaitable[Sequence[tuple[str, ...]]]]
"""Returns the commands that delete a feature's part of an ended run, each with the key it writes to second."""


class Archive:
    """Where ended runs lie that left the store; without a feature, nowhere."""

    async def recall(self, any_id: str) -> bool:
        """Put a run back for its readers, by its id or that of a suspension; return whether it is there now.

        Raises `Unreadable` where its segment is damaged or missing, and `Unavailable`.
        """
        return False

    async def read_trails(self, run_ids: Collection[str]) -> dict[str, list[bytes]]:
        """Return the trails of the archived ones of these runs, for a comparison with their checkpoints."""
        return {}

    async def list_runs(self, begin_ms: int, end_ms: int) -> dict[str, int]:
        """Return archived runs that began in a time, with their beginnings, ms."""
        return {}

    async def list_decided(
        self, begin_ms: int, end_ms: int, owner: str | None
    ) -> AsyncIterator[SuspensionRecord | Unreadable]:
        """Yield the archived suspensions that were decided in a time; with an `owner` those of its runs alone.

        What cannot be read is an error among them.
        """
        nothing: tuple[SuspensionRecord, ...] = ()
        for record in nothing:
            yield record

    async def may_hold(self, run_id: str) -> bool:
        """Return whether a segment may hold this run."""
        return False

    async def find_last_day(self) -> str:
        """Return the last day with archived runs, as 2026-10-31; empty without any."""
        return ""


Cleanup = Callable[["TenantStore"], Awaitable[None]]
"""Deletes what a feature keeps of any run's contents, after an erasure on demand."""


class Companion(Protocol):
    """What judges calls beside the rules in force, without effect."""

    async def follow(self) -> None:
        """Learn what judges now; called as often as the rules in force are read."""

    def join(self, policy: Policy) -> Policy:
        """Return the rules in force with what judges beside them."""


Read = Callable[[], Awaitable[SuspensionRecord]]
Recall = Callable[[Collection[Wanted]], Awaitable[CounterReadings]]


class Consequences:
    """What follows from a decision, or from a new suspension, in the same change; without a feature, nothing does."""

    async def find_denied(self, policy: Policy, item_id: str, read: Read, recall: Recall) -> tuple[Grant, ...]:
        return ()

    def decide(
        self,
        policy: Policy,
        record: SuspensionRecord,
        decision: Decision,
        request: DecisionRequest,
        now_ms: int,
        lost_ms: int = 0,
    ) -> Change:
        return decide(record, decision, now_ms, lost_ms)

    def begin(self, record: SuspensionRecord, now_ms: int) -> Mandate | None:
        return None


class Proven(NamedTuple):
    """What secures a decision beside its session: what a passkey signed, or a code that was used."""

    proof: Proof | None = None
    code_used: bool = False


Prove = Callable[["TenantStore", Item, DecisionRequest, Actor], Awaitable[Proven]]
"""Verifies the signature or the code of a decision, which counts once; raises `NotAuthenticated` for a wrong one."""


async def prove_nothing(_store: "TenantStore", _item: Item, _request: DecisionRequest, _by: Actor) -> Proven:
    """Refuse each signature and code, for a desk that knows neither passkeys nor people."""
    raise StepUpRequired


class Hooks(NamedTuple):
    """What features add to the core of the service, in their order."""

    consequences: Consequences = Consequences()
    prove: Prove = prove_nothing
    writers: tuple[Writer, ...] = ()
    observers: tuple[Observer, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    cleanups: tuple[Cleanup, ...] = ()
    companions: tuple[Callable[["TenantStore"], Companion], ...] = ()
    archive: Callable[[Any], Archive] | None = None


class TenantStore:
    """The share of one tenant: its key names, its unreadable records, and what features add to its core."""

    def __init__(self, connections: Connections, tenant: str, hooks: Hooks) -> None:
        self.hooks, self.connections, self.redis = hooks, connections, connections.redis
        self.keys, self.sealer = keys_of(tenant), Sealer(connections.keyring, tenant)
        self.readings, self.archive = Readings(self.sealer), Archive()
        self.starts = StartLog()
        self.counts = CommitCounts(connections.redis, connections.changes, self.keys)
        self.confirmer = Confirmer(connections.confirming, self.counts)
        self._commit = connections.redis.register_script(read_script("commit"))

    async def send(self, commit: Commit) -> bool:
        """Run a commit; return False, with nothing written, where a guard fails."""
        self.count(commit)
        names, args = commit.arguments(self.connections.macs)
        failed_guard, *reply = await self._commit(keys=names, args=args)
        if commit.is_uncounted(failed_guard):
            await self.counts.require()
        elif not failed_guard:
            self.counts.note(reply[2], as_ms(*reply[:2]))
        return not failed_guard

    def note_saved(self, update: Update | None) -> None:
        """Let observers learn of a change that was saved."""
        if update is not None:
            for observer in self.hooks.observers:
                observer.note_change(update)

    def count(self, commit: Commit) -> None:
        """Count the commit as one of this process, whose earlier ones the store must have."""
        commit.count(self.keys, self.counts.process, self.counts.own())


class StorePart:
    """A part of one tenant's store."""

    def __init__(self, store: TenantStore) -> None:
        self._store, self._redis, self._keys = store, store.redis, store.keys
        self._readings, self._send, self._sealer = store.readings, store.send, store.sealer


class DueList:
    """Members of one sorted set by the time at which each is due, ms."""

    def __init__(self, redis: Redis, key: str) -> None:
        self._redis, self._list = redis, key

    async def due(self, now_ms: int, limit: int = 500) -> list[str]:
        """Return due members, the most overdue first."""
        return texts(await self._redis.zrangebyscore(self._list, "-inf", now_ms, start=0, num=limit))

    async def defer(self, member: str, again_at_ms: int) -> None:
        """Postpone a member, unless it is gone, so that it does not delay the others."""
        await self._redis.zadd(self._list, {member: again_at_ms}, xx=True)

    async def forget(self, member: str) -> None:
        await self._redis.zrem(self._list, member)
