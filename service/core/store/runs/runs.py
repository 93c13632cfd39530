"""Reads of runs, states, trails and their indexes, which only commits of suspensions change; turns of threads."""

import heapq
from collections.abc import AsyncIterator, Iterable, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms
from sayso.core.records.decisions import Erasure
from sayso.core.records.events import TrailEntry, TrailHead
from sayso.core.records.run_state import StateRef, open_state
from sayso.core.records.suspensions import MOST_TOOLS, Progress, RunStatus, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.redaction import Redacted
from sayso.core.transitions.closing import list_typed, mask_end
from sayso.core.transitions.states import RunState, count_failed, find_run_state
from sayso.errors import Altered, InvalidInput, NotFound
from service.core.cache import Cache
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text, texts
from service.core.store.connection.macs import ALTERED, REFUSED
from service.core.store.connection.pipeline import Script
from service.core.store.connection.sealing import RUN_STATE
from service.core.store.keys import TenantKeys
from service.core.store.lua import read_script
from service.core.store.suspensions.reading import UnreadableRecord, describe_unreadable, id_of, split_readable
from service.core.store.tenants import StorePart, TenantStore

_NUMBER = Script(read_script("turn"))
MOST_TURNS = 10_000  # the highest number of a turn; all later turns share it
_KEPT_S = 30 * 86_400


class Turn(NamedTuple):
    """The number of a turn in its thread, from 1, and what ran in the thread before."""

    number: int
    progress: Progress


def list_started(before: SuspensionRecord | None, after: SuspensionRecord) -> Sequence[str]:
    """Return the tools of a thread that a change let start, in order; runs outside of a thread have none."""
    if before is None or after.run.thread_id == after.run.id:
        return ()
    earlier = {item.item_id for item in before.items if item.permit is not None}
    permits = [item.tool.name for item in after.items if item.permit is not None and item.item_id not in earlier]
    journaled = {intent.idempotency_key for intent in before.journal}
    intents = [intent.tool for intent in after.journal if intent.idempotency_key not in journaled]
    return tuple(dict.fromkeys((*permits, *intents)))


def note_tools(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Add the tools that start to those of the thread; the names beyond `MOST_TOOLS` are not needed."""
    after = update.after
    started = list_started(update.before, after)
    if not started:
        return
    key = keys.thread_tools(after.run.owner, after.run.thread_id)
    scored = ((f"{after.updated_at_ms}.{place:03}", name) for place, name in enumerate(started))
    commit.write("ZADD", key, "NX", *(part for pair in scored for part in pair))
    commit.write("ZREMRANGEBYRANK", key, MOST_TOOLS + 1, -1)
    commit.write("PEXPIRE", key, _KEPT_S * 1000)


_PAGE = 200


class RunIndex(StorePart):
    """The indexes of one tenant."""

    async def page(self, index: str, skip: int, limit: int, *, newest_first: bool) -> list[str]:
        return texts(await self._redis.zrange(index, skip, skip + limit - 1, desc=newest_first))

    async def newest(self, owner: str | None, skip: int, limit: int) -> list[str]:
        if owner is not None:
            return await self.page(self._keys.runs_of(owner), skip, limit, newest_first=True)
        owners = await self._redis.smembers(self._keys.owners)
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in owners:
                pipe.zrange(self._keys.runs_of(text(name)), 0, skip + limit - 1, desc=True, withscores=True)
            pages = await pipe.execute()
        merged = heapq.merge(*pages, key=lambda entry: -entry[1])
        return [text(entry[0]) for entry in islice(merged, skip, skip + limit)]

    async def pages_of(self, owner: str) -> AsyncIterator[list[str]]:
        """Yield the ids of the owner's runs in pages, the newest first."""
        skip = 0
        while ids := await self.page(self._keys.runs_of(owner), skip, _PAGE, newest_first=True):
            yield ids
            skip += _PAGE

    async def latest(self, run_ids: list[str]) -> list[str]:
        """Return the id of each run's latest suspension; an empty one for a deleted run."""
        return [text(raw or b"") for raw in await self._redis.mget([self._keys.run(run_id) for run_id in run_ids])]

    async def scores(self, index: str, ids: list[str]) -> list[float | None]:
        """Return the score of each id in a sorted index, None for an absent one."""
        scores: list[float | None] = await self._redis.zmscore(index, ids) if ids else []
        return scores

    async def among(self, index: str, ids: list[str]) -> list[str]:
        """Return the ids that are in a sorted index, in the given order."""
        return [member for member, score in zip(ids, await self.scores(index, ids), strict=True) if score is not None]


class Run(BaseModel, frozen=True):
    """One agent execution. `suspension_id` is its latest suspension, which links to the earlier ones."""

    id: str
    agent: str
    owner: str
    thread_id: str
    title: str = ""
    tags: tuple[str, ...] = ()
    status: RunStatus
    suspension_id: str
    created_at_ms: int
    updated_at_ms: int
    result: JsonValue = None
    error: str | None = None
    failed_calls: int = 0
    erasure: Erasure | None = None
    is_drill: bool = False
    typed: frozenset[str] = Field(default=frozenset(), exclude=True, repr=False)
    """The secrets that people typed, to mask in what agents report of the run."""

    def mask(self, value: JsonObject) -> JsonObject:
        return Redacted({}, self.typed).scrub_object(value)

    @property
    def state(self) -> RunState:
        return find_run_state(self.status, self.failed_calls)


UNREADABLE = "unreadable"  # the type of a damaged event
_ENTRY = TypeAdapter(TrailEntry)
_SAVED_MS, _MOST_SAVED = 60_000, 4_096


class Runs:
    """The runs of one tenant; most reads take one or two round trips."""

    def __init__(self, store: TenantStore) -> None:
        self._store, self._redis, self._keys, self._readings = store, store.redis, store.keys, store.readings
        self._sealer = store.sealer
        self._intake, self._pipeline = store.connections.intake, store.connections.changes
        self._index = RunIndex(store)
        self._manifests = Cache(self._read_manifests, store.connections.refresher)
        self._definitions: dict[str, float] = {}

    async def read(self, run_id: str) -> Run:
        """Return the run; raises `NotFound`, or `Unreadable` for its latest record."""
        runs = await self.read_many([run_id])
        if not runs and await self._store.archive.recall(run_id):
            runs = await self.read_many([run_id])
        if not runs:
            raise NotFound(f"There is no run {run_id!r} for this credential.")
        run = runs[0]
        if isinstance(run, UnreadableRecord):
            raise describe_unreadable(run)
        return run

    async def has_event(self, run_id: str, head: TrailHead) -> bool:
        """Return whether the run's trail has this event, or is deleted."""
        raw = await self._redis.lindex(self._keys.trail(run_id), head.seq - 1)
        if raw is None:
            return bool(await self._redis.exists(self._keys.head(run_id)))
        return f'"hash":"{head.hash}"' in text(raw)

    async def list_runs(
        self, *, status: str | None = None, owner: str | None = None, skip: int = 0, limit: int = 50
    ) -> list[Run | UnreadableRecord]:
        """Return runs, of one status, one owner or both, the newest first; suspended ones of all owners by deadline."""
        if status is None:
            return await self.read_many(await self._index.newest(owner, skip, limit))
        if owner is not None:
            run_ids: list[str] = []
            async for ids in self._index.pages_of(owner):
                if status != RunStatus.SUSPENDED:
                    run_ids += await self._index.among(self._keys.runs(status), ids)
                else:
                    latest = await self._index.latest(ids)
                    waiting = await self._index.among(self._keys.inbox, latest)
                    suspended = {*waiting, *await self._decided([id_ for id_ in latest if id_ not in waiting])}
                    run_ids += [run_id for run_id, id_ in zip(ids, latest, strict=True) if id_ in suspended]
                if len(run_ids) >= skip + limit:
                    break
            return await self.read_many(run_ids[skip : skip + limit])
        if status == RunStatus.SUSPENDED:
            return [_run_of(record) for record in await self._records(await self._suspended(skip, limit))]
        return await self.read_many(await self._index.page(self._keys.runs(status), skip, limit, newest_first=True))

    async def trail(self, run_id: str, after: int = 0, limit: int = 1000) -> list[TrailEntry]:
        """Return up to `limit` events after number `after`, in order; a damaged one has the type `unreadable`."""
        raw = await self._redis.lrange(self._keys.trail(run_id), after, after + limit - 1)
        entries: list[TrailEntry] = []
        for seq, entry in enumerate(raw, start=after + 1):
            entries.append(read_entry(_bytes(entry), seq, entries[-1].at_ms if entries else 0))
        return entries

    async def state(self, run_id: str, ref: StateRef) -> bytes:
        """Return the run's state; raises `InvalidInput` where it does not match `ref`, `Unreadable` without its key."""
        stored = _bytes(await self._pipeline.ask("GET", self._keys.state(run_id)))
        try:
            blob = self._sealer.open_bytes(RUN_STATE, stored, run_id)
        except Altered as error:
            raise InvalidInput(
                f"The run's saved state was altered. The run cannot continue. {error.message}"
            ) from error
        return open_state(ref, blob)

    async def inbox(self, skip: int = 0, limit: int = 50) -> list[str]:
        """Return the ids of pending suspensions, the earliest deadline first."""
        return await self._index.page(self._keys.inbox, skip, limit, newest_first=False)

    async def undoable(self, skip: int = 0, limit: int = 50) -> list[str]:
        """Return the ids of pending suspensions that offer to undo a call, the earliest deadline first."""
        return await self._index.page(self._keys.offers, skip, limit, newest_first=False)

    async def decided(self, skip: int = 0, limit: int = 50) -> list[str]:
        """Return the ids of suspensions with items that are no longer pending, the latest first."""
        return await self._index.page(self._keys.decided, skip, limit, newest_first=True)

    async def count_decided_to(self, suspension_id: str) -> int:
        """Return how many suspensions `decided` returns up to this one; 0 for one that is not among them."""
        rank: Any = await self._redis.zrevrank(self._keys.decided, suspension_id)
        return 0 if rank is None else int(rank) + 1

    async def latest(self, limit: int) -> list[str]:
        """Return the ids of the latest suspensions of the newest runs."""
        run_ids = await self.list_ids(limit)
        return list(filter(None, await self._index.latest(run_ids))) if run_ids else []

    async def list_ids(self, limit: int) -> list[str]:
        return await self._index.newest(None, 0, limit)

    async def count_pending(self) -> int:
        return int(await self._redis.zcard(self._keys.inbox))

    async def save_definitions(self, definitions: list[ToolDefinition]) -> None:
        """Save tool definitions by digest, each at most once a minute."""
        now_ms = monotonic_ms()
        mapping: Any = {
            definition.digest: definition.model_dump_json()
            for definition in definitions
            if self._definitions.get(definition.digest, -_SAVED_MS) < now_ms - _SAVED_MS
        }
        if mapping:
            await self._redis.hset(self._keys.definitions, mapping=mapping)
            if len(self._definitions) > _MOST_SAVED:
                self._definitions.clear()
            self._definitions |= dict.fromkeys(mapping, now_ms)

    async def definition(self, digest: str) -> ToolDefinition | None:
        """Return a tool's definition, or None; raises `Unreadable` for one of a later version."""
        raw = await self._redis.hget(self._keys.definitions, digest)
        return self._readings.require_other(ToolDefinition, raw, f"definition {digest}") if raw else None

    async def find_definitions(self, records: Iterable[SuspensionRecord]) -> dict[str, ToolDefinition | None]:
        digests = {item.tool.definition for record in records for item in record.items if item.tool.definition}
        if not digests:
            return {}
        raws = await self._redis.hmget(self._keys.definitions, sorted(digests))
        return {
            digest: self._readings.read_other(ToolDefinition, raw, f"definition {digest}") if raw else None
            for digest, raw in zip(sorted(digests), raws, strict=True)
        }

    async def number_turn(self, owner: str, thread_id: str, ask: str) -> Turn:
        """Return the turn in the owner's thread; all beyond `MOST_TURNS` share a number. Threads last 30 days."""
        keys = [self._keys.thread(owner, thread_id), self._keys.thread_tools(owner, thread_id)]
        field = sha256(ask.encode()).hexdigest()[:16]
        number, names = await self._intake.run(_NUMBER, keys, [field, MOST_TURNS, MOST_TOOLS, _KEPT_S])
        return Turn(int(number), Progress().with_tools(texts(names)))

    async def find_next_turn(self, owner: str, thread_id: str) -> Turn:
        """Return the turn that a new request in the owner's thread would get; nothing is counted."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.hlen(self._keys.thread(owner, thread_id))
            pipe.zrange(self._keys.thread_tools(owner, thread_id), 0, MOST_TOOLS)
            numbered, names = await pipe.execute()
        return Turn(min(int(numbered) + 1, MOST_TURNS), Progress().with_tools(texts(names)))

    async def save_agent(self, name: str, manifest: str) -> None:
        await self._redis.hset(self._keys.agents, name, manifest)

    async def agents(self, *, fresh: bool = True) -> dict[str, bytes]:
        """Return the manifests by name; unless `fresh`, from a cache of 500 ms."""
        return await self._manifests.find(fresh=fresh)

    async def _read_manifests(self) -> dict[str, bytes]:
        manifests = await self._redis.hgetall(self._keys.agents)
        return {text(name): _bytes(manifest) for name, manifest in sorted(manifests.items())}

    async def is_of(self, owner: str, *, run_id: str = "", suspension_id: str = "") -> bool:
        """Return whether the run, or the run of this latest suspension, is the owner's, from indexes only."""
        if run_id:
            return bool(await self._index.among(self._keys.runs_of(owner), [run_id]))
        async for ids in self._index.pages_of(owner):
            if suspension_id in await self._index.latest(ids):
                return True
        return False

    async def waiting_of(self, owner: str) -> list[str]:
        """Return the ids of the owner's pending suspensions, the earliest deadline first."""
        waiting: list[tuple[float, str]] = []
        async for ids in self._index.pages_of(owner):
            latest = await self._index.latest(ids)
            dues = zip(latest, await self._index.scores(self._keys.inbox, latest), strict=True)
            waiting += [(due_ms, id_) for id_, due_ms in dues if due_ms is not None]
        return [id_ for _, id_ in sorted(waiting)]

    async def unfinished_of(self, owner: str) -> list[str]:
        """Return the owner's unfinished runs' latest suspensions, the newest first; all of them are scheduled."""
        unfinished: list[str] = []
        async for ids in self._index.pages_of(owner):
            latest = [id_ for id_ in await self._index.latest(ids) if id_]
            unfinished += await self._index.among(self._keys.schedule, latest)
        return unfinished

    async def _decided(self, ids: list[str]) -> list[str]:
        """Return which suspensions are decided, but not resumed; only scheduled ones can be."""
        records, _ = split_readable(await self._records(await self._index.among(self._keys.schedule, ids)))
        return [record.id for record in records if record.run_status == "suspended"]

    async def _suspended(self, skip: int, limit: int) -> list[str]:
        """Return pending suspensions, the earliest deadline first, then those decided, but not resumed."""
        ids = await self.inbox(skip, limit)
        if len(ids) == limit:
            return ids
        skip = max(0, skip - await self.count_pending())
        decided: list[str] = []
        begin, most, schedule = 0, skip + limit - len(ids), self._keys.schedule
        while len(decided) < most and (page := await self._index.page(schedule, begin, _PAGE, newest_first=False)):
            begin += _PAGE
            waiting = {*ids, *await self._index.among(self._keys.inbox, page)}
            decided += await self._decided([id_ for id_ in page if id_ not in waiting])
        return ids + decided[skip:most]

    async def read_many(self, run_ids: list[str]) -> list[Run | UnreadableRecord]:
        """Return these runs in this order, without those that are not there."""
        if not run_ids:
            return []
        run_of = {id_: run_id for run_id, id_ in zip(run_ids, await self._index.latest(run_ids), strict=True) if id_}
        altered = run_of.pop(REFUSED.decode(), None)
        runs = [_run_of(record, run_of.get(id_of(record))) for record in await self._records(list(run_of))]
        return runs if altered is None else [*runs, UnreadableRecord(altered, ALTERED, altered)]

    async def _records(self, ids: list[str]) -> list[SuspensionRecord | UnreadableRecord]:
        if not ids:
            return []
        raws = await self._redis.mget([self._keys.suspension(id_) for id_ in ids])
        return await self._readings.read_several(ids, [_bytes(raw) if raw else None for raw in raws])


def read_entry(raw: bytes, seq: int, at_ms: int = 0) -> TrailEntry:
    """Return an event of a trail; a damaged one has the type `unreadable`, the time `at_ms` and no hash."""
    try:
        return _ENTRY.validate_json(raw)
    except ValidationError:
        return TrailEntry(seq=seq, at_ms=at_ms, type=UNREADABLE, data={}, hash="")


def _bytes(raw: Any) -> bytes:
    return raw.encode() if isinstance(raw, str) else raw or b""


def _run_of(record: SuspensionRecord | UnreadableRecord, run_id: str | None = None) -> Run | UnreadableRecord:
    return record._replace(run_id=run_id) if isinstance(record, UnreadableRecord) else describe_run(record)


def describe_run(record: SuspensionRecord) -> Run:
    """Return the run as of its latest suspension, with the secrets masked that people typed."""
    run, end = record.run, mask_end(record)
    return Run(
        id=run.id,
        agent=run.agent,
        owner=run.owner,
        thread_id=run.thread_id,
        title=run.title,
        tags=run.tags,
        status=record.run_status,
        suspension_id=record.id,
        created_at_ms=run.started_at_ms,
        updated_at_ms=record.updated_at_ms,
        result=end.result if end else None,
        error=end.error if end else None,
        failed_calls=count_failed(record),
        erasure=record.erasure,
        is_drill=record.is_drill,
        typed=list_typed(record),
    )
