"""Rows of one hash, each a model as JSON, changed one at a time."""

from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import BaseModel
from redis.asyncio.client import Pipeline

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

Row = TypeVar("Row", bound=BaseModel)


class RowStore(Generic[Row]):
    """The rows of one hash."""

    def __init__(self, store: TenantStore, key: str, model: type[Row]) -> None:
        self._redis, self._key, self._model = store.redis, key, model
        self._readings, self._name = store.readings, model.__name__.lower()

    async def list_all(self) -> list[Row]:
        async with translated():
            raws = await self._redis.hgetall(self._key)
        rows = (self._readings.read_other(self._model, raw, f"{self._name} {text(id_)}") for id_, raw in raws.items())
        return [row for row in rows if row is not None]

    async def count(self) -> int:
        """Return the number of rows, unreadable ones included."""
        async with translated():
            return int(await self._redis.hlen(self._key))

    async def find(self, row_id: str) -> Row | None:
        """Return a row, or None; raises `Unreadable` for one of a later version."""
        async with translated():
            raw = await self._redis.hget(self._key, row_id)
        return self._readings.require_other(self._model, raw, f"{self._name} {row_id}") if raw else None

    async def add(self, row_id: str, row: Row) -> None:
        async with translated():
            await self._redis.hset(self._key, row_id, row.model_dump_json())

    async def change(self, row_id: str, change: Callable[[Row], Row]) -> Row | None:
        """Change a row atomically and return it; None if it does not exist."""

        async def write(pipe: Pipeline) -> Row | None:
            raw = await pipe.hget(self._key, row_id)
            if raw is None:
                return None
            changed = change(self._readings.require_other(self._model, raw, f"{self._name} {row_id}"))
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(self._key, row_id, changed.model_dump_json())
            return changed

        async with translated():
            changed: Row | None = await self._redis.transaction(write, self._key, value_from_callable=True)
        return changed

    async def delete(self, row_id: str) -> bool:
        async with translated():
            return bool(await self._redis.hdel(self._key, row_id))
