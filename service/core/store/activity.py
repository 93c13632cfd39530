"""The activity log: acts of people and refusals, in a hash chain of its own. Strangers cannot fill it."""

from hashlib import sha256
from typing import Any, NamedTuple

import structlog
from pydantic import BaseModel, Field, ValidationError
from redis.asyncio.client import Pipeline

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.clock import now_ms
from sayso.core.records.base import Immutable
from sayso.errors import Unavailable
from service.core.settings.limits import network_of
from service.core.store.connection.connecting import text
from service.core.store.tenants import StorePart

MOST_ENTRIES = 200_000  # the entries that are kept; older ones are removed from the front of the chain
HOUR_MS = 3_600_000
SOURCE_REFUSALS = 20
"""Refusals of one source in an hour that each have an entry; later ones only at powers of two, with their count."""

ALL_REFUSALS = 500  # refusals of all sources in an hour that are counted by source; later ones count together
_MOST_CHARS = 200
_MOST_CHANGED = 1_500  # characters of what an act changed
CHANGED = "changed"  # the fact that says so
_HASH_CHARS = 32
_LOG = structlog.get_logger(__name__)


class Activity(Immutable):
    """One act: what (`act`, `target`, `data`), by whom, through which door and from which address.

    `by` is empty for somebody who has not signed in. `times` counts the refusals of the source in that hour. `hash`
    covers the entry and the hash `before` it.
    """

    seq: int
    at_ms: int
    act: str
    by: str = ""
    door: str = ""
    address: str = ""
    target: str = ""
    outcome: str = "done"
    times: int = 1
    data: JsonObject = Field(default_factory=dict)
    before: str = ""
    hash: str = ""

    def compute_hash(self) -> str:
        hashed = canonical_json(self.model_dump(mode="json", exclude={"hash"}), limited=False)
        return sha256(hashed).hexdigest()[:_HASH_CHARS]


class _Link(BaseModel):
    """The number and the hash of an entry, which later versions write, too."""

    seq: int = 0
    hash: str = ""


class ActivityPage(NamedTuple):
    """Entries, the newest first, and the number of the first entry that does not fit the chain, if any."""

    entries: list[Activity]
    broken_at: int | None


class ActivityStore(StorePart):
    """The activity log of one tenant."""

    async def swap_settings(self, stated: str) -> str:
        """Keep the settings of this start; return those of the last one, empty before the first."""
        known: Any = await self._redis.set(self._keys.settings, stated, get=True)
        return text(known or b"")

    async def append(self, entry: Activity) -> Activity:
        """Add an entry to the end of the chain; return it with its number and hash."""

        async def write(pipe: Pipeline) -> Activity:
            raw: Any = await pipe.lindex(self._keys.activity, -1)
            try:
                last = _Link.model_validate_json(raw or b"{}")
            except ValidationError:  # an entry of a later version
                last = _Link()
            placed = _cut(entry).model_copy(update={"seq": last.seq + 1, "before": last.hash})
            placed = placed.model_copy(update={"hash": placed.compute_hash()})
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.rpush(self._keys.activity, placed.model_dump_json())
            pipe.ltrim(self._keys.activity, -MOST_ENTRIES, -1)
            return placed

        placed: Activity = await self._redis.transaction(write, self._keys.activity, value_from_callable=True)
        return placed

    async def count_refusal(self, source: str) -> int:
        """Count a refusal of this source; return its number in this hour if it needs an entry, else 0."""
        key = self._keys.refusals(now_ms() // HOUR_MS)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hincrby(key, "all", 1)
            pipe.expire(key, 2 * HOUR_MS // 1000)
            total = int((await pipe.execute())[0])
        field = f"of {sha256(source.encode(errors='replace')).hexdigest()[:24]}" if total <= ALL_REFUSALS else "rest"
        count = int(await self._redis.hincrby(key, field, 1))
        few = field != "rest" and count <= SOURCE_REFUSALS
        return count if few or count & (count - 1) == 0 else 0

    async def read_page(self, skip: int, limit: int) -> ActivityPage:
        """Return entries, the newest first, and check the chain from one entry before them."""
        stored: list[Any] = await self._redis.lrange(self._keys.activity, -(skip + limit + 1), -(skip + 1))
        entries = [_read(raw) for raw in stored]
        return ActivityPage(entries[-limit:][::-1] if limit else [], find_break(entries))

    async def check(self) -> int | None:
        """Return the number of the first entry of the whole log that does not fit the chain, or None."""
        last: Activity | None = None
        begin = 0
        while True:
            stored: list[Any] = await self._redis.lrange(self._keys.activity, begin, begin + 999)
            entries = [_read(raw) for raw in stored]
            if not entries:
                return None
            broken_at = find_break([*([last] if last is not None else []), *entries])
            if broken_at is not None:
                return broken_at
            last, begin = entries[-1], begin + len(entries)


def find_break(entries: list[Activity]) -> int | None:
    """Return the number of the first of these consecutive entries that does not fit the chain, or None."""
    last: Activity | None = None
    for entry in entries:
        fits = last is None or (entry.seq, entry.before) == (last.seq + 1, last.hash)
        if not fits or entry.hash != entry.compute_hash():
            return entry.seq if fits or last is None else last.seq + 1
        last = entry
    return None


def _read(raw: bytes) -> Activity:
    """Return a stored entry; one that cannot be read has no valid hash, so the chain breaks there."""
    try:
        return Activity.model_validate_json(raw)
    except ValidationError:
        return Activity(seq=0, at_ms=0, act="unreadable", outcome="")


def _cut(entry: Activity) -> Activity:
    update = {name: _clean(getattr(entry, name)) for name in ("act", "by", "door", "address", "target")}
    changed = {name: _clean(str(value), _MOST_CHANGED) for name, value in entry.data.items() if name == CHANGED}
    data = {_clean(name): _clean(value) if isinstance(value, str) else value for name, value in entry.data.items()}
    if len(canonical_json(data, limited=False)) > 10 * _MOST_CHARS:
        data = {name: _clean(str(value)) for name, value in list(data.items())[:8]}
    return entry.model_copy(update={**update, "data": {**data, **changed}})


def _clean(text: str, most: int = _MOST_CHARS) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:most])


REFUSED = "refused"


class ActivityLog:
    """The activity log of one tenant: every act of people and every refusal is one log line and one entry."""

    def __init__(self, store: ActivityStore) -> None:
        self._store = store
        self.read_page, self.check = store.read_page, store.check

    async def record(
        self, act: str, by: str, *, door: str, address: str = "", target: str = "", **data: object
    ) -> None:
        facts: JsonObject = {name: _to_json(value) for name, value in data.items() if value not in (None, "", (), [])}
        entry = Activity(seq=0, at_ms=now_ms(), act=act, by=by, door=door, address=address, target=target, data=facts)
        await self._append(entry)

    async def refuse(self, act: str, by: str, why: str, *, door: str, address: str = "", target: str = "") -> None:
        """Add a refusal; a source (a name, or a stranger's network) that is refused often gets few entries."""
        try:
            times = await self._store.count_refusal(by or network_of(address))
        except Unavailable:
            _LOG.error("activity_not_recorded", act=act, by=by, door=door, address=address)
            return
        if times:
            entry = Activity(seq=0, at_ms=now_ms(), act=act, by=by, door=door, address=address, target=target)
            await self._append(entry.model_copy(update={"outcome": REFUSED, "times": times, "data": {"why": why}}))

    async def _append(self, entry: Activity) -> None:
        try:
            placed = await self._store.append(entry)
        except Unavailable:  # what was done cannot be undone, so the log line is what is left
            facts = entry.model_dump(mode="json", exclude_defaults=True)
            _LOG.error("activity_not_recorded", **{name: facts[name] for name in facts if name != "seq"})
            return
        facts = placed.model_dump(mode="json", exclude={"before", "act"}, exclude_defaults=True)
        _LOG.info(placed.act, **facts)


def _to_json(value: object) -> str | int | bool:
    """Return a value as the log keeps it: short texts, and lists as one text."""
    if isinstance(value, bool | int):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
