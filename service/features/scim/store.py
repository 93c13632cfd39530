"""What a directory sent of its users and groups, by id, with an index of the names that it cannot give twice."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field
from redis.asyncio.client import Pipeline

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Stored
from service.core.store.connection.connecting import text, texts
from service.core.store.tenants import StorePart

Kind = Literal["User", "Group"]


class Entry(Stored):
    """A user or group of a directory. `name` is the person or group in Sayso, which never changes."""

    id: str
    kind: Kind
    name: str
    label: str  # the `userName` or `displayName`, which may change
    attributes: JsonObject = Field(default_factory=dict)
    members: tuple[str, ...] = ()  # ids of users
    created_at_ms: int
    changed_at_ms: int
    version: int = 1

    @property
    def index(self) -> frozenset[str]:
        """The names that no other entry may have."""
        return frozenset((f"{self.kind} label {self.label.casefold()}", f"{self.kind} name {self.name}"))


class NameTaken(Exception):
    """Another entry has the name."""


class DirectoryStore(StorePart):
    """The directory of one tenant."""

    async def find(self, entry_id: str) -> Entry | None:
        raw = await self._redis.hget(self._keys.directory, entry_id)
        return self._readings.read_other(Entry, raw, f"directory entry {entry_id}") if raw else None

    async def find_by_label(self, kind: Kind, label: str) -> Entry | None:
        raw = await self._redis.hget(self._keys.directory_names, f"{kind} label {label.casefold()}")
        return await self.find(text(raw)) if raw else None

    async def list_all(self, kind: Kind) -> list[Entry]:
        """Return all entries of a kind, the oldest first."""
        stored = await self._redis.hgetall(self._keys.directory)
        named = ((f"directory entry {text(entry_id)}", raw) for entry_id, raw in stored.items())
        entries = [entry for entry in self._readings.read_others(Entry, named) if entry.kind == kind]
        return sorted(entries, key=lambda entry: (entry.created_at_ms, entry.id))

    async def change(self, entry_id: str, change: Callable[[Entry | None], Entry | None]) -> Entry | None:
        """Create, change or delete an entry with its names, atomically; raises `NameTaken`."""
        entries, names = self._keys.directory, self._keys.directory_names

        async def write(pipe: Pipeline) -> Entry | None:
            raw = await pipe.hget(entries, entry_id)
            known = self._readings.require_other(Entry, raw, f"directory entry {entry_id}") if raw else None
            changed = change(known)
            before, after = (entry.index if entry is not None else frozenset() for entry in (known, changed))
            added = sorted(after - before)
            owners = await pipe.hmget(names, added) if added else []
            if any(owner is not None and text(owner) != entry_id for owner in owners):
                raise NameTaken
            pipe.multi()  # type: ignore[no-untyped-call]
            if changed is None:
                pipe.hdel(entries, entry_id)
            else:
                pipe.hset(entries, entry_id, changed.model_dump_json())
            for name in before - after:
                pipe.hdel(names, name)
            for name in added:
                pipe.hset(names, name, entry_id)
            return changed

        changed: Entry | None = await self._redis.transaction(write, entries, names, value_from_callable=True)
        return changed

    async def list_people(self) -> frozenset[str]:
        """Return the names of the people whom the directory keeps."""
        begin = "User name "
        fields = texts(await self._redis.hkeys(self._keys.directory_names))
        return frozenset(field.removeprefix(begin) for field in fields if field.startswith(begin))
