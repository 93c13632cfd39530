"""Earlier approvals and denials, to compare open items with. The commits of decisions write them."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sayso.core.clock import monotonic_ms
from sayso.core.policy.counters.restraining import find_last, name_denials
from sayso.core.precedents import Measures, read_measures
from sayso.core.records.decisions import EarlierDenial
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from service.store.connection.connecting import text, translated
from service.store.memory.reading import parse_denials
from service.store.tenants import TenantStore

_CACHED_MS = 2_000
_MOST_CACHED = 500


class Kind(NamedTuple):
    """Calls that are compared with each other: those of one owner's agent to one tool."""

    owner: str
    agent: str
    tool: str


Earlier = Mapping[Kind, tuple[Measures, ...]]

NOTHING_EARLIER: Earlier = {}


class Precedents:
    """The earlier approvals of one tenant, cached for two seconds."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._cache: OrderedDict[Kind, tuple[float, tuple[Measures, ...]]] = OrderedDict()

    async def find_earlier(self, records: Iterable[SuspensionRecord]) -> Earlier:
        """Return the measures of the latest approved calls, for each kind of call in the open items of the records."""
        return await self._read(
            {kind_of(record, item.tool.name) for record in records for item in record.items if item.open}
        )

    async def find_all(self, kind: Kind) -> tuple[Measures, ...]:
        """Return the measures of the latest approved calls of one kind."""
        return (await self._read({kind}))[kind]

    async def _read(self, kinds: set[Kind]) -> dict[Kind, tuple[Measures, ...]]:
        now_ms = monotonic_ms()
        earlier = {kind: held[1] for kind in kinds if (held := self._cache.get(kind)) and held[0] > now_ms}
        wanted = [kind for kind in kinds if kind not in earlier]
        if not wanted:
            return earlier
        async with translated(), self._redis.pipeline(transaction=False) as pipe:
            for kind in wanted:
                pipe.lrange(self._keys.precedents(*kind), 0, -1)
            replies: list[list[Any]] = await pipe.execute()
        for kind, entries in zip(wanted, replies, strict=True):
            earlier[kind] = tuple(map(read_measures, entries))
            self._cache[kind] = now_ms + _CACHED_MS, earlier[kind]
            self._cache.move_to_end(kind)
        while len(self._cache) > _MOST_CACHED:
            self._cache.popitem(last=False)
        return earlier

    async def find_last(self, reviewer: str, kind: Kind) -> tuple[str, str] | None:
        """Return the suspension and the item of the latest call of this kind that the reviewer approved."""
        async with translated():
            place = await self._redis.get(self._keys.last_approval(reviewer, *kind))
        if place is None:
            return None
        suspension_id, _, item_id = text(place).partition(" ")
        return suspension_id, item_id

    async def find_denial(self, record: SuspensionRecord, item: Item) -> EarlierDenial | None:
        """Return the last denial of the same call in this run or thread, or of this agent; None for a closed item."""
        if not item.open or item.doubt is not None or item.mandate is not None:
            return None
        key = self._keys.denials(name_denials(record.run.owner, item.tool.name, item.tool.args))
        async with translated():
            denials: list[Any] = await self._redis.lrange(key, 0, -1)
        return find_last(parse_denials(denials), record.run, (record.id, item.item_id))


def kind_of(record: SuspensionRecord, tool: str) -> Kind:
    """Return the kind of a call of this run."""
    return Kind(record.run.owner, record.run.agent, tool)
