"""Replays of rules, kept for a day, and the candidate in shadow with those before it."""

from collections.abc import Callable
from typing import Any

from redis.asyncio.client import Pipeline

from sayso.core.records.base import Stored
from sayso.errors import Conflict, NotFound
from sayso.features.whatif.matrix import Tally
from sayso.wire.rulebook import ReplayStatus
from service.core.store.connection.connecting import text
from service.core.store.suspensions.reading import name_stored
from service.core.store.tenants import TenantStore

KEPT_S = 86_400
MOST_REPLAYS = 50
SILENT_MS = 30_000  # a running replay that reports nothing for this long has lost its process


class Replay(Stored):
    """A replay of rules over the calls of a range, ms. `result` counts the calls so far.

    `compares` says that other rules than those in force at the time are the base. `shadow` says that nothing was judged
    again: it counts what a candidate said when it was in shadow. `of_runs` is about how many runs
    there are. `gaps` are sentences about what of the range is no longer recorded.
    """

    id: str
    by: str
    status: ReplayStatus = ReplayStatus.WAITING
    file: str
    version: str
    compares: bool = False
    shadow: bool = False
    path: str | None = None
    from_ms: int
    to_ms: int
    started_at_ms: int
    updated_at_ms: int
    ended_at_ms: int | None = None
    runs: int = 0
    of_runs: int = 0
    error: str = ""
    gaps: tuple[str, ...] = ()
    result: Tally = Tally()


class ReplayStore:
    """The replays of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def create(self, replay: Replay) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(self._keys.replay(replay.id), replay.model_dump_json(), ex=KEPT_S)
            pipe.zadd(self._keys.replays, {replay.id: replay.started_at_ms})
            pipe.zremrangebyrank(self._keys.replays, 0, -MOST_REPLAYS - 1)
            pipe.expire(self._keys.replays, KEPT_S)
            await pipe.execute()

    async def update(self, replay: Replay) -> bool:
        """Save the replay as it is now; return False, with nothing written, if it was deleted."""
        return bool(await self._redis.set(self._keys.replay(replay.id), replay.model_dump_json(), ex=KEPT_S, xx=True))

    async def read(self, replay_id: str, now_ms: int) -> Replay:
        """Return the replay; raises `NotFound`. One whose process is gone has failed."""
        raw = await self._redis.get(self._keys.replay(replay_id))
        if raw is None:
            raise NotFound(f"There is no replay {replay_id!r}. Replays are deleted after a day.")
        return _settle(self._readings.require_other(Replay, raw, f"replay {replay_id}"), now_ms)

    async def list_all(self, now_ms: int) -> list[Replay]:
        """Return the replays that are kept, the newest first."""
        newest: list[Any] = await self._redis.zrevrange(self._keys.replays, 0, -1)
        ids = [text(member) for member in newest]
        raws = await self._redis.mget([self._keys.replay(replay_id) for replay_id in ids]) if ids else []
        kept = ((replay_id, raw) for replay_id, raw in zip(ids, raws, strict=True) if raw is not None)
        read = (self._readings.read_other(Replay, raw, f"replay {replay_id}") for replay_id, raw in kept)
        return [_settle(replay, now_ms) for replay in read if replay is not None]

    async def delete(self, replay_id: str) -> bool:
        """Delete a replay; one that runs ends. Return whether there was one."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.delete(self._keys.replay(replay_id))
            pipe.zrem(self._keys.replays, replay_id)
            deleted, _ = await pipe.execute()
        return bool(deleted)


async def delete_replays(store: TenantStore) -> None:
    """Delete all replays: their results may list the calls of a run whose contents are erased."""
    replays = ReplayStore(store)
    for replay in await replays.list_all(0):
        await replays.delete(replay.id)


def _settle(replay: Replay, now_ms: int) -> Replay:
    if replay.status.ended or now_ms - replay.updated_at_ms < SILENT_MS:
        return replay
    error = "The service that judged the calls was stopped. Start the replay again."
    return replay.model_copy(update={"status": ReplayStatus.FAILED, "error": error})


MOST_SHADOWS = 100


class Shadow(Stored):
    """A time in which a version judged calls in shadow, ms; `ended_ms` is None while it does."""

    id: str
    version: str
    digest: str
    file: str
    by: str
    began_ms: int
    ended_ms: int | None = None
    ended_by: str = ""


class ShadowStore:
    """The candidates of one tenant: one in shadow at most."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def read(self) -> Shadow | None:
        raw = await self._redis.lindex(self._keys.shadows, 0)
        shadow = self._readings.read_other(Shadow, raw, name_stored("shadow", raw)) if raw else None
        return shadow if shadow is not None and shadow.ended_ms is None else None

    async def list_all(self) -> list[Shadow]:
        raws: list[Any] = await self._redis.lrange(self._keys.shadows, 0, -1)
        shadows = (self._readings.read_other(Shadow, raw, name_stored("shadow", raw)) for raw in raws)
        return [shadow for shadow in shadows if shadow is not None]

    async def begin(self, shadow: Shadow) -> None:
        """Put a candidate in shadow; raises `Conflict` while there is another one."""

        def put(pipe: Pipeline, latest: Shadow | None) -> None:
            if latest is not None and latest.ended_ms is None:
                raise Conflict(f"Version {latest.version} is in shadow. End it first.")
            pipe.lpush(self._keys.shadows, shadow.model_dump_json())
            pipe.ltrim(self._keys.shadows, 0, MOST_SHADOWS - 1)

        await self._change(put)

    async def end(self, version: str, by: str, now_ms: int) -> None:
        """End the candidate with this version; raises `Conflict` if it is not in shadow."""

        def put(pipe: Pipeline, latest: Shadow | None) -> None:
            if latest is None or latest.ended_ms is not None or latest.version != version:
                raise Conflict(f"Version {version} is not in shadow. `sayso policy shadow status` shows which one is.")
            ended = latest.model_copy(update={"ended_ms": now_ms, "ended_by": by})
            pipe.lset(self._keys.shadows, 0, ended.model_dump_json())

        await self._change(put)

    async def _change(self, put: Callable[[Pipeline, Shadow | None], None]) -> None:
        """Queue what `put` writes, given the latest candidate, in one transaction."""

        async def write(pipe: Pipeline) -> None:
            raw = await pipe.lindex(self._keys.shadows, 0)
            latest = self._readings.require_other(Shadow, raw, name_stored("shadow", raw)) if raw else None
            pipe.multi()  # type: ignore[no-untyped-call]
            put(pipe, latest)

        await self._redis.transaction(write, self._keys.shadows)
