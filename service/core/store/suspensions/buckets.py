"""Reads of the buckets of open items, and their repair from the records."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from sayso.core.clock import monotonic_ms
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import SaysoError
from service.core.cache import share
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import as_ms, text, texts
from service.core.store.connection.pipeline import Script
from service.core.store.lua import read_script
from service.core.store.suspensions.facets import (
    Audience,
    Facets,
    OpenItem,
    list_places,
    name_bucket,
    name_member,
    read_facets,
    read_member,
    write_facets,
)
from service.core.store.suspensions.reading import UnreadableRecord
from service.core.store.suspensions.saving import SuspensionLookups
from service.core.store.suspensions.texts import write_texts
from service.core.store.tenants import TenantStore

MOST_BUCKETS = 5_000
"""With more buckets, readers scan the inbox: an agent that names a new tool in every call must not slow every page."""

_COMPLETE, _COMPARED, _SEARCHABLE = "complete", "compared", "searchable"
_MARKS = frozenset((_COMPLETE, _COMPARED, _SEARCHABLE))  # the fields of the hash of buckets that name no bucket
_BATCH = 200


class Bucket(NamedTuple):
    """The facets of open items, and their number."""

    facets: Facets
    size: int


class Comparison(NamedTuple):
    """When all buckets were last compared with the records, and how many items were not in theirs."""

    at_ms: int
    wrong: int


class Buckets:
    """The buckets of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._send = store.redis, store.keys, store.send
        self._lookups = SuspensionLookups(store)
        self._count = partial(store.connections.intake.run, Script(read_script("count_open")))
        self._first = partial(store.connections.intake.run, Script(read_script("first_open")))
        self._reading: asyncio.Future[tuple[Bucket, ...] | None] | None = None
        self._read_at_ms = -inf
        self.searchable = False
        """Whether all open items have texts, as of the last `read`."""
        self._audiences: tuple[tuple[Bucket, ...], Counter[Audience]] = ((), Counter())
        self._deadlines: dict[frozenset[str], asyncio.Future[dict[str, int | None]]] = {}

    async def read(self, since_ms: float = inf) -> tuple[Bucket, ...] | None:
        """Return all buckets, as of `since_ms` (monotonic) or later; None where readers must scan the inbox."""
        if self._reading is None or self._read_at_ms < since_ms:
            self._read_at_ms = monotonic_ms()
            self._reading = share(self._read())
        reading = self._reading
        try:
            return await asyncio.shield(reading)
        except SaysoError:
            self._reading = None if self._reading is reading else self._reading
            raise

    async def count_due(self, wanted: Sequence[Facets], until_ms: Sequence[int]) -> list[tuple[int, ...]]:
        """Return, for each of these buckets, how many of its items are due until each of these times."""
        if not wanted:
            return []
        counts = await self._count([self._keys.bucket(name_bucket(facets)) for facets in wanted], [*until_ms])
        return [tuple(counts[first : first + len(until_ms)]) for first in range(0, len(counts), len(until_ms))]

    async def count_audiences(self, since_ms: float = inf) -> Counter[Audience] | None:
        """Return the number of open items by who may decide them; None and `since_ms` as for `read`."""
        buckets = await self.read(since_ms)
        if buckets is not None and self._audiences[0] is not buckets:
            counts: Counter[Audience] = Counter()
            for facets, size in buckets:
                counts[facets.audience] += size
            self._audiences = buckets, counts
        return None if buckets is None else self._audiences[1]

    async def list_first(
        self, wanted: Collection[Facets] | None, limit: int, after: OpenItem | None = None, until_ms: int | None = None
    ) -> list[OpenItem]:
        """Return the open items of these buckets after `after`, by deadline; with None, pending suspensions instead."""
        from_ms, to_ms = after.deadline_at_ms if after is not None else 0, "+inf" if until_ms is None else until_ms
        if wanted is None:
            args: list[str | int] = [from_ms, after.suspension_id if after is not None else "", limit, to_ms]
            return [OpenItem(at_ms, member, "") for member, at_ms in await self._ask_first([self._keys.inbox], args)]
        if not wanted:
            return []
        keys = [self._keys.bucket(name_bucket(facets)) for facets in wanted]
        member = name_member(after.suspension_id, after.item_id) if after is not None else ""
        entries = await self._ask_first(keys, [from_ms, member, limit, to_ms])
        return [read_member(member, at_ms) for member, at_ms in entries]

    async def find_deadlines(self, names: frozenset[str]) -> dict[str, int | None]:
        """Return the earliest deadline of each pending suspension, None for others. Concurrent callers share it."""
        reading = self._deadlines.get(names)
        if reading is None:
            reading = self._deadlines[names] = share(self._read_deadlines(sorted(names)))
            reading.add_done_callback(lambda _: self._deadlines.pop(names, None))
        return await asyncio.shield(reading)

    async def complete(self, now_ms: int) -> int:
        """Put all open items of an earlier version into their buckets, once in a store; return their number."""
        if None not in await self._redis.hmget(self._keys.buckets, [_COMPLETE, _SEARCHABLE]):
            return 0
        filed = await self._repair_all()
        await self._redis.hset(self._keys.buckets, mapping={_COMPLETE: str(now_ms), _SEARCHABLE: str(now_ms)})
        return filed.wrong

    async def find_comparison(self) -> Comparison | None:
        """Return the result of the last `repair`; None before the first."""
        raw = await self._redis.hget(self._keys.buckets, _COMPARED)
        return Comparison(*map(int, text(raw).split())) if raw is not None else None

    async def repair(self) -> int:
        """Make the buckets of all pending suspensions those of their records; return how many items were wrong."""
        comparison = await self._repair_all()
        await self._redis.hset(self._keys.buckets, _COMPARED, f"{comparison.at_ms} {comparison.wrong}")
        return comparison.wrong

    async def _repair_all(self) -> Comparison:
        began_ms = as_ms(*await self._redis.time())
        ids = texts(await self._redis.zrange(self._keys.inbox, 0, -1))
        held: dict[str, dict[str, int]] = {}  # the buckets of every member, each with the member's deadline
        texted: set[str] = set()
        for name in {text(name) for name in await self._redis.hkeys(self._keys.buckets)} - _MARKS:
            members: list[Any] = await self._redis.zrange(self._keys.bucket(name), 0, -1, withscores=True)
            for member, deadline_at_ms in members:
                held.setdefault(text(member), {})[name] = int(deadline_at_ms)
            texted.update(f"{name} {text(member)}" for member in await self._redis.hkeys(self._keys.texts(name)))
        wrong = 0
        for start in range(0, len(ids), _BATCH):
            for record in await self._lookups.read_page(ids[start : start + _BATCH]):
                if not isinstance(record, UnreadableRecord):
                    wrong += await self._repair(record, held, texted, began_ms)
        return Comparison(began_ms, wrong + await self._remove_strangers(held, began_ms))

    async def _read_deadlines(self, names: list[str]) -> dict[str, int | None]:
        scores = await self._redis.zmscore(self._keys.inbox, names) if names else []
        return {name: None if score is None else int(score) for name, score in zip(names, scores, strict=True)}

    async def _ask_first(self, keys: list[str], args: list[str | int]) -> list[tuple[str, int]]:
        reply = await self._first(keys, args)
        return [(text(reply[place]), int(reply[place + 1])) for place in range(0, len(reply), 2)]

    async def _read(self) -> tuple[Bucket, ...] | None:
        if await self._redis.hlen(self._keys.buckets) > MOST_BUCKETS:
            return None
        stored: dict[Any, Any] = await self._redis.hgetall(self._keys.buckets)
        named = {text(name): text(written) for name, written in stored.items()}
        if _COMPLETE not in named:
            return None
        self.searchable = _SEARCHABLE in named
        kinds = [read_facets(written) for name, written in named.items() if name not in _MARKS]
        keys = [self._keys.bucket(name) for name in named if name not in _MARKS]
        sizes = await self._count(keys) if keys else []
        return tuple(Bucket(facets, size) for facets, size in zip(kinds, sizes, strict=True) if size)

    async def _repair(
        self, record: SuspensionRecord, held: dict[str, dict[str, int]], texted: set[str], began_ms: int
    ) -> int:
        """Correct the items of a record unless it changed meanwhile; its own commit has corrected it then."""
        commit, wrong = Commit(), 0
        commit.expect(self._keys.suspension(record.id), record.version)
        for member, place in list_places(record).items():
            name, deadlines = name_bucket(place.facets), held.pop(member, {})
            is_right = deadlines == {name: place.deadline_at_ms} and f"{name} {member}" in texted
            if is_right or record.updated_at_ms > began_ms:
                continue
            wrong += 1
            self._remove(commit, member, (other for other in deadlines if other != name))
            commit.write("HSETNX", self._keys.buckets, name, write_facets(place.facets))
            commit.write("ZADD", self._keys.bucket(name), place.deadline_at_ms, member)
            commit.write("HSET", self._keys.texts(name), member, write_texts(record)[member])
        return wrong if wrong and await self._send(commit) else 0

    async def _remove_strangers(self, held: dict[str, dict[str, int]], began_ms: int) -> int:
        """Remove the members that no pending record has, unless their record changed meanwhile."""
        removed = 0
        for member, names in held.items():
            suspension_id = read_member(member, 0).suspension_id
            record = next(iter(await self._lookups.read_page([suspension_id])), None)
            if isinstance(record, UnreadableRecord) or member in list_places(record):
                continue
            if record is not None and record.updated_at_ms > began_ms:
                continue
            commit = Commit()
            commit.expect(self._keys.suspension(suspension_id), record.version if record is not None else 0)
            self._remove(commit, member, names)
            removed += await self._send(commit)
        return removed

    def _remove(self, commit: Commit, member: str, names: Iterable[str]) -> None:
        for name in names:
            commit.write("ZREM", self._keys.bucket(name), member)
            commit.write("HDEL", self._keys.texts(name), member)
            commit.write_unless(self._keys.bucket(name), "HDEL", self._keys.buckets, name)
