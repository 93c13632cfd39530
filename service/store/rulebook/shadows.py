"""The candidate in shadow, and the candidates before it."""

from typing import Any

from redis.asyncio.client import Pipeline

from sayso.core.records.base import Immutable
from sayso.errors import Conflict
from service.store.connection.connecting import translated
from service.store.suspensions.reading import name_stored
from service.store.tenants import TenantStore

MOST_KEPT = 100


class Shadow(Immutable):
    """A time in which a version judged calls in shadow, ms; `ended_ms` is None while it does.

    `version` is that of its rules, and `digest` that of its bytes.
    """

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
        """Return the candidate in shadow."""
        async with translated():
            raw = await self._redis.lindex(self._keys.shadows, 0)
        shadow = self._readings.read_other(Shadow, raw, name_stored("shadow", raw)) if raw else None
        return shadow if shadow is not None and shadow.ended_ms is None else None

    async def list_all(self) -> list[Shadow]:
        """Return the candidates that are or were in shadow, the latest first."""
        async with translated():
            raws: list[Any] = await self._redis.lrange(self._keys.shadows, 0, -1)
        shadows = (self._readings.read_other(Shadow, raw, name_stored("shadow", raw)) for raw in raws)
        return [shadow for shadow in shadows if shadow is not None]

    async def begin(self, shadow: Shadow) -> None:
        """Put a candidate in shadow; raises `Conflict` while there is another one."""
        key = self._keys.shadows

        async def write(pipe: Pipeline) -> None:
            raw = await pipe.lindex(key, 0)
            latest = self._readings.require_other(Shadow, raw, name_stored("shadow", raw)) if raw else None
            if latest is not None and latest.ended_ms is None:
                raise Conflict(f"Version {latest.version} is in shadow. End it first.")
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.lpush(key, shadow.model_dump_json())
            pipe.ltrim(key, 0, MOST_KEPT - 1)

        async with translated():
            await self._redis.transaction(write, key)

    async def end(self, version: str, by: str, now_ms: int) -> None:
        """End the candidate with this version; raises `Conflict` if it is not in shadow."""
        key = self._keys.shadows

        async def write(pipe: Pipeline) -> None:
            raw = await pipe.lindex(key, 0)
            latest = self._readings.require_other(Shadow, raw, name_stored("shadow", raw)) if raw else None
            if latest is None or latest.ended_ms is not None or latest.version != version:
                raise Conflict(f"Version {version} is not in shadow. `sayso policy shadow status` shows which one is.")
            pipe.multi()  # type: ignore[no-untyped-call]
            ended = latest.model_copy(update={"ended_ms": now_ms, "ended_by": by})
            pipe.lset(key, 0, ended.model_dump_json())

        async with translated():
            await self._redis.transaction(write, key)
