"""The guards and writes of one commit, with indexes that follow from both records, and limits on requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from sayso.core.clock import DAY_MS, monotonic_ms
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.records.chain import write_events
from sayso.core.records.events import Event, TrailHead
from sayso.core.records.suspensions import Change, RunStatus, Status, SuspensionRecord
from sayso.core.transitions.closing import mask_contents
from sayso.errors import TooManyRequests
from service.core.caller_ids import current_ids
from service.core.concurrency import Turnstile
from service.core.settings import Settings
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import name_shared, text
from service.core.store.connection.pipeline import Script
from service.core.store.connection.sealing import RUN_STATE
from service.core.store.counters import describe_counters, parse_counters
from service.core.store.keys import CHANGES, TenantKeys, keys_of
from service.core.store.lua import read_script
from service.core.store.suspensions.reading import pack_record
from service.core.store.suspensions.schedule import Backlog, Schedule
from service.core.store.tenants import StorePart, TenantStore

IDEMPOTENCY_MS = DAY_MS  # how long an Idempotency-Key is kept


@dataclass(frozen=True)
class Idempotency:
    """One caller's key for one request, identified by its fingerprint."""

    actor: str
    key: str
    fingerprint: str
    ref: str
    kept_ms: int = IDEMPOTENCY_MS

    def write(self, commit: Commit, keys: TenantKeys) -> None:
        key = keys.idempotency(self.actor, self.key)
        commit.expect(key, 0)
        commit.write("SET", key, f"1|{self.fingerprint}|{self.ref}", "PX", self.kept_ms)


@dataclass(frozen=True)
class Room:
    """Limits of open items and active runs, for each owner and for all."""

    each: int
    all: int


def build_commit(
    before: SuspensionRecord | None,
    change: Change,
    head: TrailHead,
    commit_id: str,
    seen: Idempotency | None,
    store: TenantStore,
    *,
    small: bool = False,
    room: Room | None = None,
) -> tuple[Commit, SuspensionRecord, TrailHead]:
    """Return the commit, the record after it, and the trail's new head; `small` saves bytes, `room` limits items."""
    after = change.record.model_copy(update={"version": (before.version if before else 0) + 1})
    keys = keys_of(after.tenant)
    commit = Commit()
    commit.expect(keys.suspension(after.id), after.version - 1)
    first_seq = head.seq + 1
    events = mask_contents(change.record, change.events)
    if request_id := current_ids.get().request_id:
        events = tuple(Event(event.type, {**event.data, "request_id": request_id}) for event in events)
    head, entries = write_events(head, events, after.updated_at_ms)
    packed = pack_record(after, head, commit_id, store.sealer, small=small)
    commit.record = packed
    commit.write("SET", keys.suspension(after.id), packed)
    _move_indexes(commit, keys, before, after)
    if change.following is not None:
        following = change.following.model_copy(update={"version": 1})
        commit.expect(keys.suspension(following.id), 0)
        packed = pack_record(following, head, commit_id, store.sealer, small=small)
        commit.write("SET", keys.suspension(following.id), packed)
        _move_indexes(commit, keys, None, following)
    last = change.following or after
    _move_run(commit, keys, before, last)
    if entries:
        commit.write("RPUSH", keys.trail(after.run.id), *entries)
        commit.write("HINCRBY", keys.unchecked, after.run.id, len(entries))
    if change.state is not None:
        blob = store.sealer.seal_bytes(RUN_STATE, change.state.blob, after.run.id)
        commit.write("SET", keys.state(after.run.id), blob)
    if change.ready:
        commit.push_copy(keys.ready, f"{last.id} ", keys.suspension(last.id))
    elif change.handed_to:
        commit.expect_waiting(keys, change.handed_to)
        commit.push_copy(keys.handed(change.handed_to), f"{last.id} ", keys.suspension(last.id))
    if seen is not None:
        seen.write(commit, keys)
    if room is not None:
        _expect_room(commit, keys, before, last, room)
    pairs = ((before, after),) if change.following is None else ((before, after), (None, change.following))
    update = Update(before, change, after, pairs, first_seq, after.updated_at_ms)
    commit.update = update if store.hooks.observers else None
    for write in store.hooks.writers:
        write(commit, keys, update)
    changed = after.id if change.following is None else f"{after.id} {change.following.id}"
    for topic in (after.tenant, after.id, after.run.id):
        commit.write("PUBLISH", name_shared(store.redis, CHANGES + topic), changed)
    return commit, after, head


def _move_indexes(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, after: SuspensionRecord) -> None:
    if after.due_at_ms is not None:
        commit.write("ZADD", keys.schedule, after.due_at_ms, after.id)
    elif before is not None and before.due_at_ms is not None:
        commit.write("ZREM", keys.schedule, after.id)
    was, now = list_open(before) if before is not None else [], list_open(after)
    entered, gone = [name for name in now if name not in was], [name for name in was if name not in now]
    for key in (keys.open,) if after.is_drill else (keys.open, keys.open_of(after.run.owner)):
        if entered:
            commit.write("ZADD", key, *(part for name in entered for part in (after.created_at_ms, name)))
        if gone:
            commit.write("ZREM", key, *gone)
    wanted, known = ([item.preview_request for item in found.items] if found else [] for found in (after, before))
    if any(wanted) and wanted != known:
        commit.write("RPUSH", keys.previews, after.id)
    was_pending = before is not None and before.status is Status.PENDING
    waiting = keys.offers if after.offers_undo else keys.inbox
    if after.status is Status.PENDING:
        commit.write("ZADD", waiting, after.deadline_at_ms or 0, after.id)
    elif after.items and (was_pending or before is None):
        commit.write("ZREM", waiting, after.id)
        commit.write("ZADD", keys.decided, after.updated_at_ms, after.id)


def list_open(record: SuspensionRecord) -> list[str]:
    """Return the entries that count against the limits: open items, or the run while it is active."""
    if record.status is Status.PENDING:
        return [f"{record.id} {item.item_id}" for item in record.items if item.open]
    at_work = record.status in (Status.DECIDED, Status.RESUMING) and record.resume.mode == "worker"
    return [record.id] if at_work and record.end is None else []


def _expect_room(
    commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, last: SuspensionRecord, room: Room
) -> None:
    """Count in the index of the same commit, which no crash can falsify."""
    opens, owner = len(list_open(last)) - (len(list_open(before)) if before is not None else 0), last.run.owner
    if opens <= 0:
        return
    wait = "Have some decided or cancelled, or wait until runs have ended; then ask again."
    each = f"{owner} would have more than {room.each} open items and runs (SAYSO_PENDING_PER_KEY). {wait}"
    all_ = f"All agents together would have more than {room.all} open items and runs (SAYSO_PENDING_LIMIT). {wait}"
    commit.expect_room(keys.open_of(owner), room.each - opens, each)
    commit.expect_room(keys.open, room.all - opens, all_)


def _move_run(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, last: SuspensionRecord) -> None:
    run, status = last.run, last.run_status
    if before is None or before.id != last.id:
        commit.write("SET", keys.run(run.id), last.id)
    if before is None and last.previous_id is None:
        commit.write("ZADD", keys.runs_of(run.owner), run.started_at_ms, run.id)
        commit.write("SADD", keys.owners, run.owner)
    old = before.run_status if before is not None else None
    if status is old:
        return
    if status is not RunStatus.SUSPENDED:
        commit.write("ZADD", keys.runs(status), run.started_at_ms, run.id)
    if old is not None and old is not RunStatus.SUSPENDED:
        commit.write("ZREM", keys.runs(old), run.id)


_RECALL = "local function recall(KEYS, ARGV)\n" + read_script("recall").partition("]]\n")[2] + "end\n"
_PACE = Script("#!lua\n" + _RECALL + read_script("pace"))
_MINUTE_US = 60_000_000
_CALM_MS = 1_000
MOST_COUNTERS = 200  # the counters that are read in the round trip of one request


class Opened(NamedTuple):
    """The number of open items: of all owners, and of the owner with most."""

    all: int
    most: int
    owner: str


class Intake(StorePart):
    """The limits from the settings; the store counts for all processes."""

    def __init__(self, store: TenantStore, limits: Settings) -> None:
        super().__init__(store)
        self._pipeline, self.limits = store.connections.intake, limits
        self._backlog = Backlog(Schedule(store), limits, store.connections.refresher)
        self.room = Room(limits.pending_per_key, limits.pending_limit)
        self._refused_at_ms = -inf
        self._turnstile = Turnstile()

    def is_calm(self) -> bool:
        """Return whether this process has refused nothing of late, so that work ahead of an admission pays."""
        return monotonic_ms() - self._refused_at_ms > _CALM_MS

    async def admit(self, owner: str, *, for_workers: bool = False, counters: Sequence[Wanted] = ()) -> Readings:
        """Count a request, in its turn, unless `for_workers`; return what counters hold. Raises `TooManyRequests`."""
        await self._turnstile.enter()
        try:
            if for_workers:
                await self._backlog.admit()
            return await self._pace(owner, tuple(dict.fromkeys(counters)))
        except TooManyRequests:
            self._refused_at_ms = monotonic_ms()
            raise

    async def _pace(self, owner: str, counters: Sequence[Wanted]) -> Readings:
        keys = self._keys
        paces = (self.limits.asks_per_minute_per_key, self.limits.asks_per_minute)
        words = [len(paces), *(word for pace in paces for word in (_MINUTE_US // pace, _MINUTE_US))]
        names, args = describe_counters(keys, counters)
        answer = await self._pipeline.run(_PACE, [keys.pace_of(owner), keys.pace, *names], words + args)
        if not answer[0]:
            return parse_counters(counters, answer[1])
        wait_s = ceil(answer[1] / 1_000_000)
        if answer[0] == 1:
            reason = f"{owner} asked {paces[0]} times within a minute, as often as one key may"
            setting = "SAYSO_ASKS_PER_MINUTE_PER_KEY"
        else:
            reason, setting = f"All keys together asked {paces[1]} times within a minute", "SAYSO_ASKS_PER_MINUTE"
        raise TooManyRequests(f"{reason} ({setting}). Ask again in {wait_s} s.", retry_after_s=wait_s, limit="pace")

    async def count_open(self) -> Opened:
        keys = self._keys
        owners = sorted(text(owner) for owner in await self._redis.smembers(keys.owners))
        async with self._redis.pipeline(transaction=False) as pipe:
            for key in (keys.open, *map(keys.open_of, owners)):
                pipe.zcard(key)
            count, *each = await pipe.execute()
        most, owner = max(zip(each, owners, strict=True), default=(0, ""))
        return Opened(int(count), int(most), owner)
