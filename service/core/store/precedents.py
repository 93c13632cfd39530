"""Earlier approvals and denials, to compare open items with. The commits of decisions write them."""

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS, monotonic_ms
from sayso.core.policy.counters.restraining import (
    MOST_DENIALS,
    describe_denial,
    find_last,
    is_denied,
    list_denials,
    name_denials,
)
from sayso.core.precedents import Measures, find_measures, name_subjects, read_measures, write_measures
from sayso.core.records.decisions import ActorKind, DecisionAction, EarlierDenial, Verdict
from sayso.core.records.envelopes import Revision
from sayso.core.records.items import Item, ItemDraft
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from sayso.core.text.redaction import redact
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.superseding import find_revision
from sayso.errors import NotFound, Unreadable
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text
from service.core.store.counters import parse_denials
from service.core.store.keys import TenantKeys
from service.core.store.tenants import TenantStore

MOST_PRECEDENTS = 200
MOST_NEAR = 50  # the latest denials of a tool that are searched for near calls
MOST_COMPARED = 3  # the denied calls that are read to compare one with them
_KEPT_MS = 180 * DAY_MS
_RETURNED_MS = 30 * DAY_MS  # how long a new version of a returned call is recognized


def note_precedents(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Keep the approvals and denials by people that a change brings; most changes have none."""
    before, after = update.before, update.after
    _note_returned(commit, keys, update)
    if before is None:
        return
    for name, denial in list_denials(before, after):
        key = keys.denials(name)
        commit.write("RPUSH", key, denial.model_dump_json())
        commit.write("LTRIM", key, -MOST_DENIALS, -1)
        commit.write("PEXPIRE", key, _KEPT_MS)
    run = after.run
    for item in after.items:
        earlier = find_item(before, item.item_id)
        if item is earlier or item.drill is not None:
            continue
        if earlier.open and is_denied(item):
            key = keys.near_denials(run.owner, item.tool.name)
            commit.write("RPUSH", key, _write_near(after, item))
            commit.write("LTRIM", key, -MOST_NEAR, -1)
            commit.write("PEXPIRE", key, _KEPT_MS)
        known = {decision.id for decision in earlier.decisions}
        for decision in item.decisions:
            if decision.id in known:
                continue
            if decision.by.kind is ActorKind.HUMAN and decision.action is DecisionAction.APPROVE:
                key = keys.last_approval(decision.by.id, run.owner, run.agent, item.tool.name)
                commit.write("SET", key, f"{after.id} {item.item_id}", "PX", _KEPT_MS)
        if earlier.open and _is_approved(item):
            measures = find_measures(_find_args(item))
            if measures:
                key = keys.precedents(run.owner, run.agent, item.tool.name)
                commit.write("RPUSH", key, write_measures(measures))
                commit.write("LTRIM", key, -MOST_PRECEDENTS, -1)
                commit.write("PEXPIRE", key, _KEPT_MS)


def _note_returned(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Keep the item whose changes were requested for its new version, until that is decided otherwise."""
    run = update.after.run
    for item in update.after.items:
        outcome = item.outcome
        if outcome is None or item.drill is not None or (outcome.changes is None and item.revises is None):
            continue
        if update.before is not None and not find_item(update.before, item.item_id).open:
            continue
        key = keys.returned(run.owner, run.thread_id, item.tool.name)
        if outcome.changes is not None:
            commit.write("SET", key, f"{update.after.id} {item.item_id}", "PX", _RETURNED_MS)
        else:
            commit.write("DEL", key)


def list_forgotten(keys: TenantKeys, record: SuspensionRecord) -> Iterator[tuple[str, str, *tuple[str | int, ...]]]:
    """Yield the commands that remove what was kept of the record's calls for comparison."""
    for item in record.items:
        if is_denied(item):
            name, denial = describe_denial(record, item)
            yield "LREM", keys.denials(name), 0, denial.model_dump_json()
            yield "LREM", keys.near_denials(record.run.owner, item.tool.name), 0, _write_near(record, item)
        measures = find_measures(_find_args(item))
        if _is_approved(item) and measures:
            key = keys.precedents(record.run.owner, record.run.agent, item.tool.name)
            yield "LREM", key, 1, write_measures(measures)


def _find_args(item: Item) -> JsonObject:
    outcome = item.outcome
    args = item.tool.args if outcome is None or outcome.args is None else outcome.args
    return redact(args, None, item.terms.secrets).args if item.terms.secrets else args


def _write_near(record: SuspensionRecord, item: Item) -> str:
    """Return what tells where a call was denied, and names of what it was about."""
    run = record.run
    args = redact(item.tool.args, None, item.terms.secrets).args if item.terms.secrets else item.tool.args
    return to_json([record.id, item.item_id, run.id, run.agent, run.thread_id, *name_subjects(args)]).decode()


def _is_approved(item: Item) -> bool:
    outcome = item.outcome
    return outcome is not None and outcome.verdict is Verdict.APPROVED and outcome.by.kind is ActorKind.HUMAN


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
        return (await self._read({kind}))[kind]

    async def _read(self, kinds: set[Kind]) -> dict[Kind, tuple[Measures, ...]]:
        now_ms = monotonic_ms()
        earlier = {kind: held[1] for kind in kinds if (held := self._cache.get(kind)) and held[0] > now_ms}
        wanted = [kind for kind in kinds if kind not in earlier]
        if not wanted:
            return earlier
        async with self._redis.pipeline(transaction=False) as pipe:
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
        return find_last(parse_denials(await self._redis.lrange(key, 0, -1)), record.run, (record.id, item.item_id))

    async def find_near(self, record: SuspensionRecord, item: Item) -> list[tuple[str, str]]:
        """Return the latest denied items that may be near, of this run, thread or agent, at most `MOST_COMPARED`."""
        if not item.open or item.doubt is not None or item.mandate is not None or not item.tool.args:
            return []
        run = record.run
        subjects = {*name_subjects(item.tool.args)}
        places = list[tuple[str, str]]()
        for entry in reversed(await self._redis.lrange(self._keys.near_denials(run.owner, item.tool.name), 0, -1)):
            suspension_id, item_id, run_id, agent, thread_id, *names = json.loads(entry)
            about = agent == run.agent or run_id == run.id or (thread_id is not None and thread_id == run.thread_id)
            if about and not subjects.isdisjoint(names) and (suspension_id, item_id) != (record.id, item.item_id):
                places.append((suspension_id, item_id))
        return places[:MOST_COMPARED]


def kind_of(record: SuspensionRecord, tool: str) -> Kind:
    """Return the kind of a call of this run."""
    return Kind(record.run.owner, record.run.agent, tool)


class Revisions:
    """Finds, for calls that are asked about, the items that they are new versions of."""

    def __init__(self, store: TenantStore, read: Callable[[str], Awaitable[SuspensionRecord]]) -> None:
        self._redis, self._keys, self._read = store.redis, store.keys, read

    async def mark(self, drafts: Sequence[ItemDraft], run: RunRef) -> Sequence[ItemDraft]:
        """Return the drafts of a run, each with the item of the same tool and thread that it revises, if any.

        A draft that says which item it revises stays as it is.
        """
        if all(draft.revises is not None for draft in drafts):
            return drafts
        names = [self._keys.returned(run.owner, run.thread_id, draft.tool.name) for draft in drafts]
        places: list[Any] = await self._redis.mget(names)
        return [
            draft
            if place is None or draft.revises is not None
            else draft.model_copy(update={"revises": await self._find(text(place))})
            for draft, place in zip(drafts, places, strict=True)
        ]

    async def find(self, place: str, run: RunRef, tool: str) -> Revision:
        """Return what a call of a run revises that names this item, as `suspension/item`; raises `InvalidInput`."""
        try:
            record = await self._read(place.partition("/")[0])
        except NotFound:
            record = None
        return find_revision(record, place, run, tool)

    async def _find(self, place: str) -> Revision | None:
        suspension_id, _, item_id = place.partition(" ")
        try:
            outcome = find_item(await self._read(suspension_id), item_id).outcome
        except (NotFound, Unreadable):
            return None
        if outcome is None or outcome.changes is None:
            return None
        return Revision(suspension_id=suspension_id, item_id=item_id, round=outcome.changes.round)
