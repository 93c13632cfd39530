"""Erasure of the contents of ended runs, each in one commit, and what remains: decisions, and a chain of tombstones."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

import structlog

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS
from sayso.core.records.base import Immutable
from sayso.core.records.chain import describe_tombstones, find_break, write_entry, write_events
from sayso.core.records.decisions import Actor, Erasure
from sayso.core.records.events import Event, EventType, TrailEntry, TrailHead
from sayso.core.records.items import Item, Prompt
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.core.records.terms import DECIDING
from sayso.errors import Conflict, NotFound, SaysoError, Unavailable, Unreadable
from service.core.store.announcements import list_event_ids
from service.core.store.connection.commits import Commit, split_values
from service.core.store.connection.connecting import name_shared, text
from service.core.store.keys import CHANGES
from service.core.store.precedents import list_forgotten
from service.core.store.runs.runs import read_entry
from service.core.store.suspensions.reading import Unpacked, pack_record
from service.core.store.tenants import EndedRun, StorePart, TenantStore

_WHO = (
    *("by", "who", "agent", "owner", "worker", "holder", "person", "delegate", "channel", "reviewers", "subagent"),
    "address",
)
_WHICH = (
    *("suspension_id", "item_id", "call_id", "tool_call_id", "index", "tool_name", "tool_names", "step", "attempt"),
    *("decision_id", "inquiry_id", "grant_id", "id", "suspends", "digest", "drawn", "seen", "closed_with_it"),
    *("event_type", "kind", "drill", "calls_in_flight", "note_id", "preview", "outdated", "invitation_id"),
)
_DECIDED = (
    *("action", "policy_id", "rule_id", "matched_rules", "rule_version", "absolute", "near_miss", "resembles"),
    *("would_allow", *DECIDING, "second_look", "verdict", "verdicts", "proof", "code_used", "invited", "ending"),
    *("approved", "edited", "caught", "agrees", "ran", "success", "started", "look_ms", "effect", "approvals", "stage"),
)
_COUNTED = (
    *("at_ms", "until_ms", "deadline_at_ms", "again_at_ms", "by_ms", "latency_ms", "tool_call_count", "failure_count"),
    *("progress", "usage", "finish_reason"),
)
_KEPT = frozenset((*_WHO, *_WHICH, *_DECIDED, *_COUNTED))
"""The fields of an event that no erasure removes. A field that is not named here is contents."""

_NESTED = frozenset(("payload", "items", "unanswered", "shadow", "shown", "grant", "mandate", "candidate", "judged"))
"""The fields of which the same is kept inside."""


_NOTHING_SAID = {"args": None, "value": None, "message": None, "offer": None}


def make_tombstone(entry: TrailEntry, erased_by: int) -> TrailEntry:
    """Return what remains of an event after an erasure: who did what, when and by which rule."""
    if entry.erased_by is not None or entry.type == EventType.CONTENTS_ERASED:
        return entry
    kept = _strip(entry.data)
    return entry if kept == entry.data else entry.model_copy(update={"data": kept, "erased_by": erased_by})


def _strip(data: Mapping[str, Any]) -> JsonObject:
    kept = {name: value for name, value in data.items() if name in _KEPT}
    for name in _NESTED & data.keys():
        value = data[name]
        if isinstance(value, Mapping):
            kept[name] = _strip(value)
        elif isinstance(value, list):
            kept[name] = [_strip(part) for part in value if isinstance(part, Mapping)]
    return kept


def erase_record(record: SuspensionRecord, erasure: Erasure) -> SuspensionRecord:
    """Return the next version of the record without the contents of the run and its items."""
    update = {
        "version": record.version + 1,
        "run": record.run.model_copy(update={"title": "", "tags": (), "facts": {}, "claimed": {}}),
        "items": tuple(_erase_item(item, erasure) for item in record.items),
        "state": None,
        "journal": (),
        "typed": (),
        "notes": tuple(note.model_copy(update={"text": ""}) for note in record.notes),
        "receipt": record.receipt.model_copy(update={"error": None}),
        "end": _empty(record.end, result=None, error=None),
        "erasure": erasure,
    }
    return record.model_copy(update=update)


def _erase_item(item: Item, erasure: Erasure) -> Item:
    """Return the item without its arguments and every text about them; its digest names what was decided."""
    if item.erasure is not None:
        return item
    decisions = tuple(
        decision.model_copy(update={**_NOTHING_SAID, "number": None, "shown": _empty(decision.shown, paths=())})
        for decision in item.decisions
    )
    update: dict[str, object] = {
        "tool": item.tool.model_copy(update={"args": {}}),
        "prompt": Prompt(),
        "choices": None,
        "response_schema": None,
        "computed": None,
        "remembered": (),
        "charges": (),
        "previews": (),
        "preview_request": None,
        "assessment": None,
        "learning": None,
        "original": None,
        "doubt": _empty(item.doubt, charges=()),
        "secret_number": "",
        "drill": _empty(item.drill, signs=()),
        "mandate": _empty(item.mandate, tools=()),
        "decisions": decisions,
        "outcome": _empty(item.outcome, **_NOTHING_SAID),
        "inquiries": tuple(
            inquiry.model_copy(update={"text": "", "answer": None if inquiry.answer is None else ""})
            for inquiry in item.inquiries
        ),
        "forwards": tuple(given.model_copy(update={"note": ""}) for given in item.forwards),
        "invitations": tuple(invitation.model_copy(update={"note": ""}) for invitation in item.invitations),
        "erasure": erasure,
    }
    if (permit := item.permit) is not None:
        update["permit"] = permit.model_copy(update={"report": _empty(permit.report, output=None, error=None)})
    return item.model_copy(update=update)


def _empty(record: Immutable | None, **fields: object) -> Immutable | None:
    return record.model_copy(update=fields) if record is not None else None


PROMISED_MS = 8 * DAY_MS  # how long a request of another protocol, its key and its message are kept after its end


class Age(NamedTuple):
    """The times before which a run, or a request of another protocol, must have ended."""

    ended_before_ms: int
    promised_before_ms: int

    def reached(self, record: SuspensionRecord) -> bool:
        if record.resume.endpoint_id is not None:
            promised_ms = max(record.updated_at_ms, *(item.terms.deadline_at_ms for item in record.items))
            if promised_ms >= self.promised_before_ms:
                return False
        return record.updated_at_ms < self.ended_before_ms


async def read_chain(store: TenantStore, run_id: str) -> list[Unpacked]:
    """Return the stored records of a run, the latest first; none of a deleted run. Raises `Unreadable`."""
    chain: list[Unpacked] = []
    suspension_id: Any = await store.redis.get(store.keys.run(run_id))
    while suspension_id is not None:
        raw: Any = await store.redis.get(store.keys.suspension(text(suspension_id)))
        if raw is None:
            break
        chain.append(store.readings.read(text(suspension_id), raw))
        suspension_id = chain[-1].record.previous_id
    return chain


_ROUNDS = 10  # attempts for a run that changes at the same time, as with a second look
_PAGE = 100

_LOG = structlog.get_logger(__name__)


class Why(NamedTuple):
    """Who erases, why, and when, ms."""

    by: Actor
    reason: str
    at_ms: int


class _StoredRun(NamedTuple):
    """A run as stored: its records, the latest first and none of a deleted run, and its verified trail."""

    run_id: str
    records: Sequence[Unpacked]
    trail: Sequence[TrailEntry]
    head: TrailHead


class Erasures(StorePart):
    """Erasure of the contents of runs of one tenant."""

    async def erase(self, run_id: str, why: Why) -> Erasure:
        """Erase the contents of an ended run, once; return its erasure. Raises `NotFound`, `Unreadable`, `Conflict`."""
        for _ in range(_ROUNDS):
            run = await self._read(run_id)
            if run.records:
                before = run.records[0].record.erasure
            else:  # of a deleted run its trail has it
                erased = next((entry for entry in run.trail if entry.type == EventType.CONTENTS_ERASED), None)
                before = read_erasure(erased) if erased is not None else None
            if before is not None:
                return before
            endpoints: list[Any] = await self._redis.hkeys(self._keys.endpoints)
            ids = [id_ for stored in run.records for id_ in list_event_ids(stored.record)] if endpoints else []
            deliveries = [self._keys.delivery(f"{id_}.{text(place)}") for id_ in ids for place in endpoints]
            for some in split_values(deliveries):
                await self._redis.unlink(*some)  # messages that endpoints received, or have yet to receive
            erasure = Erasure(by=why.by, at_ms=why.at_ms, reason=why.reason, seq=run.head.seq + 1)
            if await self._send(await self._build(run, erasure)):
                return erasure
        raise Unavailable("The run changes too often; nothing was erased. Try again in a moment.")

    async def erase_old(self, ended_before_ms: int, limit: int, why: Why) -> int:
        """Erase the contents of up to `limit` runs that ended before this time; return their number."""
        age = Age(ended_before_ms, why.at_ms - PROMISED_MS)
        erased = 0
        async for run_id in self._list_old(age):
            if erased == limit:
                break
            try:
                chain = await read_chain(self._store, run_id)
                if chain and not (chain[0].record.run_status.ended and age.reached(chain[0].record)):
                    continue
                await self.erase(run_id, why)
            except (Unreadable, Conflict, NotFound) as error:
                _LOG.warning("contents_not_erased", run=run_id, reason=error.message)
                continue
            erased += 1
        return erased

    async def _list_old(self, age: Age) -> AsyncIterator[str]:
        """Yield runs that are not erased. The indexes are by start, or by end for deleted runs."""
        indexes = [self._keys.runs(status) for status in RunStatus if status.ended]
        for index in (*indexes, self._keys.trails):
            skip = 0
            while True:
                ids: Any = await self._redis.zrangebyscore(index, "-inf", age.ended_before_ms, start=skip, num=_PAGE)
                if not ids:
                    break
                erased = await self._redis.zmscore(self._keys.erased, ids)
                for run_id, at_ms in zip(ids, erased, strict=True):
                    if at_ms is None:
                        yield text(run_id)
                skip += _PAGE

    async def _read(self, run_id: str) -> _StoredRun:
        records = await read_chain(self._store, run_id)
        if not records and await self._store.archive.recall(run_id):
            records = await read_chain(self._store, run_id)
        if records and not records[0].record.run_status.ended:
            raise Conflict("The run has not ended, so its calls may still be decided or run. Cancel it first.")
        kept: Any = await self._redis.get(self._keys.head(run_id))
        raw: list[Any] = await self._redis.lrange(self._keys.trail(run_id), 0, -1)
        if records:
            head = records[0].head
        elif kept is not None:
            seq, _, hash_ = text(kept).partition("|")
            head = TrailHead(int(seq), hash_)
        else:
            raise NotFound(f"There is no run {run_id!r}. Its contents cannot be erased.")
        trail = [read_entry(entry, seq) for seq, entry in enumerate(raw, start=1)]
        broken = find_break(trail)
        last = TrailHead(trail[-1].seq, trail[-1].hash) if trail else TrailHead()
        if broken is not None or last != head:
            place = f"at event {broken}" if broken is not None else "at its end"
            raise Conflict(
                f"The trail of the run was altered {place}. Nothing was erased, because an erasure would hide that. "
                "Ask the operator to run `sayso doctor`."
            )
        return _StoredRun(run_id, records, trail, head)

    async def _build(self, run: _StoredRun, erasure: Erasure) -> Commit:
        keys, run_id = self._keys, run.run_id
        trail = [make_tombstone(entry, erasure.seq) for entry in run.trail]
        tombstones = [entry for entry in trail if entry.erased_by == erasure.seq]
        said = {"by": erasure.by.model_dump(mode="json"), "reason": erasure.reason, **describe_tombstones(tombstones)}
        event = Event(EventType.CONTENTS_ERASED, said)
        head, added = write_events(run.head, (event,), erasure.at_ms)
        commit = Commit()
        for stored in run.records:
            record, new_head = stored.record, head if stored is run.records[0] else stored.head
            commit.expect(keys.suspension(record.id), record.version)
            packed = pack_record(erase_record(record, erasure), new_head, stored.commit_id, self._store.sealer)
            commit.write("SET", keys.suspension(record.id), packed)
            for command, key, *args in list_forgotten(keys, record):
                commit.write(command, key, *args)
            commit.write("PUBLISH", name_shared(self._redis, CHANGES + record.id), record.id)
        if not run.records:
            commit.expect(keys.head(run_id), run.head.seq)
            commit.write("SET", keys.head(run_id), f"{head.seq}|{head.hash}")
        commit.write("DEL", keys.trail(run_id))
        for some in split_values([*map(write_entry, trail), *added]):
            commit.write("RPUSH", keys.trail(run_id), *some)
        commit.write("HINCRBY", keys.unchecked, run_id, 1)
        commit.write("DEL", keys.state(run_id))
        commit.write("DEL", keys.external_events(run_id))
        await write_deletions(commit, self._store, EndedRun(run_id, trail, erased=True))
        commit.write("ZADD", keys.erased, erasure.at_ms, run_id)
        for topic in (keys.tenant, run_id):
            commit.write(
                "PUBLISH",
                name_shared(self._redis, CHANGES + topic),
                " ".join(stored.record.id for stored in run.records),
            )
        return commit


async def write_deletions(commit: Commit, store: TenantStore, run: EndedRun) -> None:
    """Add what features delete of an ended run."""
    for delete in store.hooks.deletions:
        for command, key, *args in await delete(store, run):
            commit.write(command, key, *args)


def read_erasure(entry: TrailEntry) -> Erasure:
    """Return the erasure that a trail event recorded."""
    try:
        by = Actor.model_validate(entry.data["by"])
        return Erasure(by=by, at_ms=entry.at_ms, reason=str(entry.data["reason"]), seq=entry.seq)
    except (KeyError, ValueError) as error:
        raise SaysoError("The event of the erasure cannot be read. Ask the operator to run `sayso doctor`.") from error
