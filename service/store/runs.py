"""Read runs, their trails and their states, and find what is waiting or done.

Nothing here changes a run: that happens in the commit of its suspension alone.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter
from redis.asyncio import Redis

from sayso.errors import NotFound
from sayso.events import TrailEntry
from sayso.states import StateRef, open_state
from sayso.suspensions import RunEnd, RunStatus
from sayso.tool_calls import ToolDefinition
from service.store.commits import RunInfo
from service.store.connections import translated
from service.store.keys import TenantKeys


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


class Runs:
    """Look-ups by id and by list, each one round trip or two."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def read(self, tenant: str, run_id: str) -> Run:
        """Return the run; raises `NotFound`."""
        async with translated():
            fields: dict[bytes, bytes] = await self._redis.hgetall(TenantKeys(tenant).run(run_id))
        if not fields:
            raise NotFound(f"There is no run {run_id!r} for this credential.")
        return _run_of(run_id, fields)

    async def list_runs(
        self, tenant: str, *, status: str | None = None, owner: str | None = None, skip: int = 0, limit: int = 50
    ) -> list[Run]:
        """Return runs, newest first: all, those in one status, or those one credential asked for."""
        keys = TenantKeys(tenant)
        index = keys.runs_of(owner) if owner is not None else keys.runs(status)
        found: list[Run] = []
        while len(found) < limit:
            ids = await self._page(index, skip, limit, newest_first=True)
            runs = await self._read_many(keys, ids)
            found += [run for run in runs if status is None or run.status == status]
            skip += limit
            if len(ids) < limit:
                break
        return found[:limit]

    async def trail(self, tenant: str, run_id: str, after: int = 0, limit: int = 1000) -> list[TrailEntry]:
        """Return the run's events behind the one numbered `after`, in order."""
        async with translated():
            raw: list[bytes] = await self._redis.lrange(TenantKeys(tenant).trail(run_id), after, after + limit - 1)
        return [_ENTRY.validate_json(entry) for entry in raw]

    async def state(self, tenant: str, run_id: str, ref: StateRef) -> bytes:
        """Return the run's own state; raises `InvalidInput` when it is not the one `ref` vouches for."""
        async with translated():
            blob: bytes | None = await self._redis.get(TenantKeys(tenant).state(run_id))
        return open_state(ref, blob or b"")

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
        if definitions:
            mapping: dict[str, Any] = {one.digest: one.model_dump_json() for one in definitions}
            async with translated():
                await self._redis.hset(TenantKeys(tenant).definitions, mapping=mapping)

    async def definition(self, tenant: str, digest: str) -> ToolDefinition | None:
        """Return the tool definition of that digest, or None where nobody gave one."""
        async with translated():
            raw = await self._redis.hget(TenantKeys(tenant).definitions, digest)
        return ToolDefinition.model_validate_json(raw) if raw else None

    async def save_agent(self, tenant: str, name: str, manifest: str) -> None:
        """Publish what the service may know of a registered agent."""
        async with translated():
            await self._redis.hset(TenantKeys(tenant).agents, name, manifest)

    async def agents(self, tenant: str) -> dict[str, bytes]:
        """Return the published manifests by name."""
        async with translated():
            found: dict[bytes, bytes] = await self._redis.hgetall(TenantKeys(tenant).agents)
        return {name.decode(): manifest for name, manifest in sorted(found.items())}

    async def _page(self, index: str, skip: int, limit: int, *, newest_first: bool) -> list[str]:
        async with translated():
            ids: list[bytes] = await self._redis.zrange(index, skip, skip + limit - 1, desc=newest_first)
        return [one.decode() for one in ids]

    async def _read_many(self, keys: TenantKeys, run_ids: list[str]) -> list[Run]:
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
            for run_id in run_ids:
                pipe.hgetall(keys.run(run_id))
            found = await pipe.execute()
        return [_run_of(run_id, fields) for run_id, fields in zip(run_ids, found, strict=True) if fields]


def _run_of(run_id: str, fields: dict[bytes, bytes]) -> Run:
    info = RunInfo.model_validate_json(fields[b"info"])
    end = RunEnd.model_validate_json(fields[b"end"]) if b"end" in fields else None
    return Run(
        id=run_id,
        **info.model_dump(exclude={"request_id"}),
        status=RunStatus(fields[b"status"].decode()),
        suspension_id=fields[b"suspension"].decode(),
        created_at_ms=int(fields[b"created"]),
        updated_at_ms=int(fields[b"updated"]),
        result=end.result if end else None,
        error=end.error if end else None,
    )
