"""Searches of the inbox that people saved under a name."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from redis.asyncio.client import Pipeline

from sayso.core.canonical_json import digest_json
from sayso.errors import Conflict, NotFound
from service.core.operations.queries import LONGEST_SEARCH
from service.core.store.connection.connecting import translated
from service.core.store.tenants import TenantStore

MOST_VIEWS = 20
LONGEST_NAME = 60


class SavedView(BaseModel):
    """A search of the inbox that a person saved under a name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        min_length=1, max_length=LONGEST_NAME, examples=["Large refunds"]
    )
    search: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        min_length=1, max_length=LONGEST_SEARCH, examples=["is:mine tool:refund amount>1000"]
    )

    @property
    def id(self) -> str:
        return f"view_{digest_json(self.name)[:32]}"


class _Views(BaseModel):
    model_config = ConfigDict(frozen=True)

    views: tuple[SavedView, ...] = ()


class ViewStore:
    """The saved views of one tenant's people."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def list_of(self, person: str) -> tuple[SavedView, ...]:
        async with translated():
            raw = await self._redis.hget(self._keys.views, person)
        read = self._readings.read_other(_Views, raw, f"views of {person}") if raw else None
        return read.views if read is not None else ()

    async def save(self, person: str, view: SavedView) -> SavedView:
        """Save a view in place of one with the same name; raises `Conflict` for more than `MOST_VIEWS`."""

        def change(views: tuple[SavedView, ...]) -> tuple[SavedView, ...]:
            others = tuple(other for other in views if other.name != view.name)
            if len(others) >= MOST_VIEWS:
                raise Conflict(f"{MOST_VIEWS} views are saved, the most a person can have. Delete one first.")
            return (*others, view)

        await self._change(person, change)
        return view

    async def delete(self, person: str, view_id: str) -> None:
        """Delete a view; raises `NotFound` for an unknown id."""

        def change(views: tuple[SavedView, ...]) -> tuple[SavedView, ...]:
            others = tuple(view for view in views if view.id != view_id)
            if len(others) == len(views):
                raise NotFound(f"You have no saved view {view_id[:64]!r}. List your views to see their ids.")
            return others

        await self._change(person, change)

    async def _change(self, person: str, change: Callable[[tuple[SavedView, ...]], tuple[SavedView, ...]]) -> None:
        key = self._keys.views

        async def write(pipe: Pipeline) -> None:
            raw = await pipe.hget(key, person)
            known = self._readings.require_other(_Views, raw, f"views of {person}").views if raw else ()
            changed = tuple(sorted(change(known), key=lambda view: view.name.casefold()))
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(key, person, _Views(views=changed).model_dump_json())

        async with translated():
            await self._redis.transaction(write, key)
