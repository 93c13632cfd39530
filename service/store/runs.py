"""Read runs, their trails and their states, and find what is waiting or done.

Nothing here changes a run: that happens in the commit of its suspension alone.
"""

import heapq
from itertools import islice
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter
from redis.asyncio import Redis

from sayso.clock import monotonic_ms
from sayso.errors import NotFound
from sayso.events import TrailEntry
from sayso.states import StateRef, open_state
from sayso.suspensions import RunStatus, Status, SuspensionRecord
from sayso.tool_calls import ToolDefinition
from service.store.connections import text, translated
from service.store.keys import TenantKeys
from service.store.packing import unpack_record


class Run(BaseModel):
    """One agent execution, as it stands. `suspension_id` is the latest; all earlier ones lead back from it."""

    model_config = ConfigDict(frozen=True)

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


_ENTRY = TypeAdapter(TrailEntry)
_PAGE = 200
_REMEMBERED_MS = 500
_SAVED_MS, _MOST_SAVED = 60_000, 4_096


class Runs:
    """Look-ups by id and by list, each one round trip or two."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._manifests: dict[str, tuple[dict[str, bytes], float]] = {}
        self._definitions: dict[tuple[str, str], float] = {}

    async def read(self, tenant: str, run_id: str) -> Run:
        """Return the run; raises `NotFound`."""
        runs = await self._read_many(TenantKeys(tenant), [run_id])
        if not runs:
            raise NotFound(f"There is no run {run_id!r} for this credential.")
        return runs[0]

    async def list_runs(
        self, tenant: str, *, status: str | None = None, owner: str | None = None, skip: int = 0, limit: int = 50
    ) -> list[Run]:
        """Return runs, newest first: all, those in one status, or those one credential asked for."""
        keys = TenantKeys(tenant)
        if status == RunStatus.SUSPENDED:
            return await self._suspended(keys, owner, skip, limit)
        if owner is not None:
            return await self._matching([keys.runs_of(owner)], keys, skip, limit, status)
        if status is not None:
            return await self._matching([keys.runs(status)], keys, skip, limit, None)
        async with translated():
            owners = await self._redis.smembers(keys.owners)
        return await self._matching([keys.runs_of(text(one)) for one in owners], keys, skip, limit, None)

    async def trail(self, tenant: str, run_id: str, after: int = 0, limit: int = 1000) -> list[TrailEntry]:
        """Return the run's events behind the one numbered `after`, in order."""
        async with translated():
            raw = await self._redis.lrange(TenantKeys(tenant).trail(run_id), after, after + limit - 1)
        return [_ENTRY.validate_json(entry) for entry in raw]

    async def state(self, tenant: str, run_id: str, ref: StateRef) -> bytes:
        """Return the run's own state; raises `InvalidInput` when it is not the one `ref` vouches for."""
        async with translated():
            blob = await self._redis.get(TenantKeys(tenant).state(run_id))
        return open_state(ref, _bytes(blob))

    async def inbox(self, tenant: str, skip: int = 0, limit: int = 50) -> list[str]:
        """Return the ids of pending suspensions, the earliest deadline first."""
        return await self._page(TenantKeys(tenant).inbox, skip, limit, newest_first=False)

    async def decided(self, tenant: str, skip: int = 0, limit: int = 50) -> list[str]:
        """Return the ids of suspensions that were asked and no longer wait, the latest first."""
        return await self._page(TenantKeys(tenant).decided, skip, limit, newest_first=True)

    async def count_pending(self, tenant: str) -> int:
        """Return how many suspensions wait for a reviewer."""
        async with translated():
            return int(await self._redis.zcard(TenantKeys(tenant).inbox))

    async def save_definitions(self, tenant: str, definitions: list[ToolDefinition]) -> None:
        """Keep tool definitions by their digest; what is there already stays."""
        now_ms = monotonic_ms()
        mapping: Any = {
            one.digest: one.model_dump_json()
            for one in definitions
            if self._definitions.get((tenant, one.digest), -_SAVED_MS) < now_ms - _SAVED_MS
        }
        if mapping:
            async with translated():
                await self._redis.hset(TenantKeys(tenant).definitions, mapping=mapping)
            if len(self._definitions) > _MOST_SAVED:
                self._definitions.clear()
            self._definitions |= {(tenant, digest): now_ms for digest in mapping}

    async def definition(self, tenant: str, digest: str) -> ToolDefinition | None:
        """Return the tool definition of that digest, or None where nobody gave one."""
        async with translated():
            raw = await self._redis.hget(TenantKeys(tenant).definitions, digest)
        return ToolDefinition.model_validate_json(raw) if raw else None

    async def save_agent(self, tenant: str, name: str, manifest: str) -> None:
        """Publish what the service may know of a registered agent."""
        async with translated():
            await self._redis.hset(TenantKeys(tenant).agents, name, manifest)

    async def agents(self, tenant: str, *, fresh: bool = True) -> dict[str, bytes]:
        """Return the published manifests by name, as they stand or, not fresh, as they stood half a second ago."""
        held = self._manifests.get(tenant)
        if held is not None and not fresh and monotonic_ms() < held[1]:
            return held[0]
        asked_at_ms = monotonic_ms()
        async with translated():
            found = await self._redis.hgetall(TenantKeys(tenant).agents)
        manifests = {text(name): _bytes(manifest) for name, manifest in sorted(found.items())}
        self._manifests[tenant] = (manifests, asked_at_ms + _REMEMBERED_MS)
        return manifests

    async def waiting_of(self, tenant: str, owner: str) -> list[str]:
        """Return the ids of all that waits for a reviewer for one owner's sake."""
        keys, waiting, at = TenantKeys(tenant), [], 0
        while ids := await self._page(keys.runs_of(owner), at, 500, newest_first=True):
            async with translated():
                latest = await self._redis.mget([keys.run(run_id) for run_id in ids])
            records = await self._records(keys, [text(one) for one in latest if one])
            waiting += [record.id for record in records if record.status is Status.PENDING]
            at += 500
        return waiting

    async def _page(self, index: str, skip: int, limit: int, *, newest_first: bool) -> list[str]:
        async with translated():
            ids: list[Any] = await self._redis.zrange(index, skip, skip + limit - 1, desc=newest_first)
        return [text(one) for one in ids]

    async def _suspended(self, keys: TenantKeys, owner: str | None, skip: int, limit: int) -> list[Run]:
        """Suspended runs wait in the inbox, the earliest deadline first, or are decided and have not gone on yet."""
        found: list[Run] = []
        seen: set[str] = set()  # what waits is on the agenda too: read again, it may be decided by then and told twice
        for index, status in ((keys.inbox, Status.PENDING), (keys.agenda, Status.DECIDED)):
            at = 0
            while len(found) < skip + limit:
                ids = await self._page(index, at, _PAGE, newest_first=False)
                new = await self._records(keys, [one for one in ids if one not in seen])
                seen.update(ids)
                own = [one for one in new if owner is None or one.run.owner == owner]
                standing = [_run_of(record) for record in own if record.status is status]
                found += [run for run in standing if run.status is RunStatus.SUSPENDED]
                at += _PAGE
                if len(ids) < _PAGE:
                    break
        return found[skip : skip + limit]

    async def _matching(
        self, indexes: list[str], keys: TenantKeys, skip: int, limit: int, status: str | None
    ) -> list[Run]:
        """Merge the newest of several indexes, keeping what is in `status`, until a page is full."""
        found: list[Run] = []
        wanted = skip + limit
        while True:
            async with translated(), self._redis.pipeline(transaction=False) as pipe:
                for index in indexes:
                    pipe.zrange(index, 0, wanted - 1, desc=True, withscores=True)
                pages = await pipe.execute()
            merged = heapq.merge(*pages, key=lambda entry: -entry[1])
            ids = [entry[0].decode() for entry in islice(merged, wanted)]
            runs = await self._read_many(keys, ids)
            found = [run for run in runs if status is None or run.status == status]
            if len(found) >= skip + limit or len(ids) < wanted:
                return found[skip : skip + limit]
            wanted *= 2

    async def _read_many(self, keys: TenantKeys, run_ids: list[str]) -> list[Run]:
        """Read runs through the suspension each one stands at now."""
        if not run_ids:
            return []
        async with translated():
            latest = await self._redis.mget([keys.run(run_id) for run_id in run_ids])
        return [_run_of(record) for record in await self._records(keys, [text(one) for one in latest if one])]

    async def _records(self, keys: TenantKeys, suspension_ids: list[str]) -> list[SuspensionRecord]:
        if not suspension_ids:
            return []
        async with translated():
            found = await self._redis.mget([keys.suspension(one) for one in suspension_ids])
        return [unpack_record(_bytes(raw))[0] for raw in found if raw]


def _bytes(raw: Any) -> bytes:
    return raw.encode() if isinstance(raw, str) else raw or b""


def _run_of(record: SuspensionRecord) -> Run:
    run, end = record.run, record.end
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
    )
