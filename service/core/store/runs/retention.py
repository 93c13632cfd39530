"""Deletion of ended runs, each in one commit if it is unchanged, and later of their trails with the comments."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sayso.core.records.events import TrailHead
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.errors import Unreadable
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import text
from service.core.store.rules import DEFAULT
from service.core.store.runs.erasures import PROMISED_MS, Age, Erasures, read_chain, write_deletions
from service.core.store.tenants import EndedRun, StorePart, TenantStore


class Retention(StorePart):
    """Deletion of the ended runs of one tenant, and erasure of their contents before that."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store)
        self.erasures = Erasures(store)

    async def claim(self, every_s: int) -> bool:
        """Return True once in `every_s`, to one of all processes."""
        return bool(await self._redis.set(self._keys.retained, "1", nx=True, ex=every_s))

    async def give_back(self) -> None:
        """Withdraw the claim: more runs remain to be deleted."""
        await self._redis.delete(self._keys.retained)

    async def keeps_trail(self, run_id: str) -> bool:
        return await self._redis.zscore(self._keys.trails, run_id) is not None

    async def forget_runs(self, ended_before_ms: int, limit: int, now_ms: int = 0) -> int:
        """Delete up to `limit` ended runs, another protocol's only after `PROMISED_MS`; return their number."""
        age, forgotten = Age(ended_before_ms, now_ms - PROMISED_MS), 0
        for index in (self._keys.runs(status) for status in RunStatus if status.ended):
            passed = 0  # runs that ended too recently, as the index is by start
            while forgotten < limit:
                most = min(100, limit - forgotten)
                ids: Any = await self._redis.zrangebyscore(index, "-inf", ended_before_ms, start=passed, num=most)
                if not ids:
                    break
                for run_id in ids:
                    gone = False
                    with suppress(Unreadable):  # it is kept until it is readable
                        chain = await read_chain(self._store, text(run_id))
                        records = [stored.record for stored in chain]
                        if records and records[0].run_status.ended and age.reached(records[0]):
                            gone = await self._send(await self._build(records, chain[0].head))
                    forgotten += gone
                    passed += not gone
        return forgotten

    async def forget_trails(self, ended_before_ms: int, limit: int) -> int:
        """Delete up to `limit` trails of deleted runs that ended before this time; return their number."""
        keys = self._keys
        ids: list[Any] = await self._redis.zrangebyscore(keys.trails, "-inf", ended_before_ms, start=0, num=limit)
        if not ids:
            return 0
        async with self._redis.pipeline(transaction=True) as pipe:
            parts = (keys.trail, keys.head, keys.comments, keys.comments_seen)
            pipe.unlink(*(key(text(run_id)) for run_id in ids for key in parts))
            pipe.zrem(keys.trails, *ids)
            pipe.zrem(keys.erased, *ids)
            await pipe.execute()
        return len(ids)

    async def _build(self, records: Sequence[SuspensionRecord], head: TrailHead) -> Commit:
        keys, last = self._keys, records[0]
        commit = await build_deletion(self._store, records)
        commit.write("SET", keys.head(last.run.id), f"{head.seq}|{head.hash}")
        commit.write("ZADD", keys.trails, last.updated_at_ms, last.run.id)
        return commit


async def build_deletion(store: TenantStore, records: Sequence[SuspensionRecord]) -> Commit:
    """Return the deletion of an unchanged run, the latest of its records first, without its trail and comments."""
    keys, last, commit = store.keys, records[0], Commit()
    commit.expect(keys.suspension(last.id), last.version)
    for record in records:
        commit.write("DEL", keys.suspension(record.id))
        for index in (keys.decided, keys.inbox, keys.offers, keys.schedule):
            commit.write("ZREM", index, record.id)
        for item in record.items:
            commit.write("LREM", keys.asked_by(item.terms.rule_id or DEFAULT), 0, f"{record.id} {item.item_id}")
    for key in (keys.run, keys.state, keys.external_events, keys.external_events_seen):
        commit.write("DEL", key(last.run.id))
    await write_deletions(commit, store, EndedRun(last.run.id))
    commit.write("ZREM", keys.runs(last.run_status), last.run.id)
    commit.write("ZREM", keys.runs_of(last.run.owner), last.run.id)
    return commit
