"""Changes to one suspension: read it, apply a transition, commit on an unchanged version, else retry."""

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from sayso.core.clock import monotonic_ms
from sayso.core.policy.counters.readings import Reading, Readings, Wanted
from sayso.core.records.events import EventType, TrailHead
from sayso.core.records.judgements import Question, assess_unanswered
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.errors import (
    IdempotencyConflict,
    NotAuthenticated,
    NotFound,
    OverLimit,
    SaysoError,
    TooManyRequests,
    Unavailable,
    Unreadable,
)
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import LOST, as_ms
from service.core.store.connection.macs import REFUSED, describe_altered
from service.core.store.connection.pipeline import Script
from service.core.store.counters import read_counters
from service.core.store.load import WaitingWorkers
from service.core.store.loss.start_log import Start
from service.core.store.lua import read_script
from service.core.store.people import People
from service.core.store.precedents import Revisions
from service.core.store.suspensions.batches import DueBatches
from service.core.store.suspensions.commits import Idempotency, Room, build_commit
from service.core.store.suspensions.reading import Unpacked, UnreadableRecord, read_record
from service.core.store.suspensions.sampling import Sampling
from service.core.store.tenants import StorePart, TenantStore

_ROUNDS = 100  # attempts of one change; each failure means that another change succeeded
_REMEMBERED = 512  # pending suspensions that a process caches, to change them without a read
_EARLY_MS, _LATE_MS = 20, 200  # the allowed error, ms, of this process's estimate of the store's time
ROOM_AFTER_S = 15  # `Retry-After` of a request over the limits of open items
_READING_MS = 1_000  # the age, ms, up to which a reading of the store's time counts
Verb = Callable[[SuspensionRecord, int], Change]
Begin = Callable[[int], Change]
Step = Callable[[SuspensionRecord | None, int], Change]


AskAssessors = Callable[[Mapping[str, Question]], Awaitable[dict[str, Reading]]]
"""Return what assessors say, by the key of the question."""


async def ask_nobody(questions: Mapping[str, Question]) -> dict[str, Reading]:
    """Answer for assessors where none can be asked: every call counts as high."""
    why = "no assessor can be asked here"
    return {key: Reading(assessment=assess_unanswered(question, why)) for key, question in questions.items()}


class State(NamedTuple):
    """One suspension with the server's time; `fresh` is false for a cached one."""

    record: SuspensionRecord | None
    now_ms: int
    head: TrailHead
    last_commit: str | None = None
    fingerprint: str | None = None
    ref: str | None = None
    fresh: bool = True


class Saved(NamedTuple):
    """The record after a change, and the server's time of the change.

    `repeated` marks a request that was carried out before, and `ref` its result. `sent_at_ms` and `saved_at_ms` are
    monotonic times of this process; 0 if unknown.
    """

    record: SuspensionRecord
    now_ms: int
    repeated: bool = False
    ref: str | None = None
    following: SuspensionRecord | None = None
    head: TrailHead = TrailHead()
    saved_at_ms: float = 0
    sent_at_ms: float = 0

    def as_state(self) -> State:
        """Return the record as if it was just read; the commit's guard notices a change since."""
        return State(self.record, self.estimate_ms(), self.head, fresh=False)

    def estimate_ms(self) -> int:
        """Return the server's time now, by the monotonic time that has passed."""
        return self.now_ms + (max(0, int(monotonic_ms() - self.saved_at_ms)) if self.saved_at_ms else 0)


class _Attempt(NamedTuple):
    commit: Commit
    commit_id: str
    saved: Saved
    starts: bool
    epoch: int


class SuspensionLookups(StorePart):
    """Reads of the suspensions of one tenant, by id and by run."""

    async def read_many(self, suspension_ids: list[str]) -> list[SuspensionRecord]:
        """Return the suspensions that exist and are readable, in the given order."""
        return [record for record in await self.read_page(suspension_ids) if isinstance(record, SuspensionRecord)]

    async def read_page(self, suspension_ids: list[str]) -> list[SuspensionRecord | UnreadableRecord]:
        """Return the suspensions that exist, in the given order, and name unreadable ones."""
        if not suspension_ids:
            return []
        raws: list[Any] = await self._redis.mget([self._keys.suspension(id_) for id_ in suspension_ids])
        return await self._readings.read_several(suspension_ids, raws)

    async def read_chain(self, suspension_id: str, limit: int) -> list[SuspensionRecord | UnreadableRecord]:
        """Return up to `limit` suspensions that end with this one, the oldest first, from an unreadable one on."""
        records: list[SuspensionRecord | UnreadableRecord] = []
        before: str | None = suspension_id
        while before is not None and len(records) < limit:
            page = await self.read_page([before])
            records += page
            before = page[0].previous_id if page and isinstance(page[0], SuspensionRecord) else None
        return records[::-1]


class Suspensions(SuspensionLookups):
    """The suspensions of one tenant; `mark_ms` returns the latest time that a clock confirmed, `ask` asks assessors."""

    def __init__(
        self,
        store: TenantStore,
        mark_ms: Callable[[], int] = lambda: 0,
        ask: AskAssessors = ask_nobody,
        undo: str | None = None,
    ) -> None:
        super().__init__(store)
        self._ask, self.tenant, self.mark_ms = ask, store.keys.tenant, mark_ms
        self.sampling, self.revisions = Sampling(store, undo), Revisions(store, self._read_record)
        self.find_inactive = People(store).find_inactive
        self.due_batches = DueBatches(store, mark_ms)
        self.waiting = WaitingWorkers(store.connections, store.keys)
        self._load = partial(store.connections.changes.run, Script(read_script("load")))
        self._commit = partial(store.connections.changes.run, Script(read_script("commit")))
        self._recent: OrderedDict[str, Saved] = OrderedDict()
        self._connections, self.hooks = store.connections, store.hooks
        self.counts, self.starts, self.confirm = store.counts, store.starts, store.confirmer.confirm
        self.prove = partial(store.hooks.prove, store)

    async def read(self, suspension_id: str) -> Saved:
        """Return the suspension and the server's time, and cache a pending one; raises `NotFound`."""
        state = await self._find(suspension_id, None)
        if state.record is None and await self._store.archive.recall(suspension_id):
            state = await self._find(suspension_id, None)
        if state.record is None:
            raise NotFound(f"There is no suspension {suspension_id!r} for this credential.")
        saved = _unchanged(state.record, state)
        self._remember(saved)
        return saved

    async def _read_record(self, suspension_id: str) -> SuspensionRecord:
        return (await self.read(suspension_id)).record

    async def read_time_ms(self) -> int:
        """Return the store server's time; asks it only if its last answer is over a second old."""
        read_ms, at_ms = self._connections.time_read
        passed_ms = monotonic_ms() - at_ms
        if passed_ms > _READING_MS:
            read_ms, passed_ms = self._read_time(*await self._redis.time()), 0.0
        return max(read_ms + int(passed_ms), self.mark_ms())

    async def create(
        self, suspension_id: str, begin: Begin, seen: Idempotency | None = None, room: Room | None = None
    ) -> Saved:
        """Save a new suspension, or return the first of its key; raises `TooManyRequests` over `room`, `OverLimit`."""

        def start(record: SuspensionRecord | None, now_ms: int) -> Change:
            return begin(now_ms) if record is None else Change(record)

        return await self._change(suspension_id, start, seen, new=True, room=room)

    async def change(
        self,
        suspension_id: str,
        verb: Verb,
        seen: Idempotency | None = None,
        known: Saved | None = None,
        room: Room | None = None,
    ) -> Saved:
        """Apply the transition `verb` and save its change. Nothing changes when it raises.

        With `known`, what the caller saved last, no read is needed first. Raises `NotFound`, `IdempotencyConflict`,
        `OverLimit`, `Unavailable`, `TooManyRequests` over `room`, and the errors of the transition.
        """

        def step(record: SuspensionRecord | None, now_ms: int) -> Change:
            if record is None:
                raise NotFound(f"There is no suspension {suspension_id!r} for this credential.")
            return verb(record, now_ms)

        return await self._change(suspension_id, step, seen, known, room=room)

    async def _change(
        self,
        suspension_id: str,
        step: Step,
        seen: Idempotency | None,
        known: Saved | None = None,
        *,
        new: bool = False,
        room: Room | None = None,
    ) -> Saved:
        state, ended = self._recall(suspension_id, known, new=new), None
        try:
            change = step(state.record, state.now_ms) if state is not None else None
        except SaysoError:
            change = None  # the cached record may be too old for the transition
        if state is not None and change is not None and change.record is not state.record:
            ended = await self._commit_change(state, change, seen, room)
        if not isinstance(ended, Saved):
            ended = await self._read_and_change(suspension_id, step, seen, room, ended)
        await self.confirm()
        return ended

    async def _read_and_change(
        self, suspension_id: str, step: Step, seen: Idempotency | None, room: Room | None, lost: _Attempt | None
    ) -> Saved:
        """Read the record, apply the step and commit, until no other change came first; `lost` was tried before."""
        for _ in range(_ROUNDS):
            state = await self._find(suspension_id, seen)
            if lost is not None and state.last_commit == lost.commit_id:
                self._store.note_saved(lost.commit.update)
                return lost.saved
            if seen is not None and state.fingerprint is not None:
                if state.fingerprint != seen.fingerprint:
                    raise IdempotencyConflict(idempotency_key=seen.key)
                if state.record is not None:
                    return _unchanged(state.record, state)
                return (await self.read(str(state.ref)))._replace(ref=state.ref)
            change = step(state.record, state.now_ms)
            if change.record is state.record:
                return _unchanged(change.record, state)
            ended = await self._commit_change(state, change, seen, room)
            if isinstance(ended, Saved):
                return ended
            lost = ended or lost
        raise Unavailable("Too many concurrent changes; nothing was changed. Try again in a moment.")

    async def _commit_change(
        self, state: State, change: Change, seen: Idempotency | None, room: Room | None
    ) -> Saved | _Attempt | None:
        """Commit a change; return the attempt if its answer was lost, and None if another change came first."""
        attempt = self._prepare(state, change, seen, room)
        try:
            saved = await self._run_commit(attempt)
        except Unavailable as error:
            if isinstance(error.__cause__, LOST):
                return attempt
            raise
        if saved is not None:
            self._remember(saved)
        return saved

    async def recall(self, wanted: Collection[Wanted], ask: AskAssessors | None = None) -> Readings:
        """Return what the counters hold and assessors, or `ask`, say; without counters nothing is read."""
        questions = {need.counter: need.question for need in wanted if need.question is not None}
        said = await (ask or self._ask)(questions) if questions else {}
        counted = [need for need in wanted if need.question is None] if questions else wanted
        return {**said, **await read_counters(self._connections.changes, self._keys, counted)} if counted else said

    def recall_packed(self, suspension_id: str, packed: bytes) -> Saved | None:
        """Return a packed record as `known`; None where it must be read."""
        read_ms, at_ms = self._connections.time_read
        passed_ms = monotonic_ms() - at_ms
        if passed_ms > _READING_MS:
            return None
        try:
            record, head, *_ = self._read_copy(suspension_id, packed)
        except Unreadable:
            return None
        now_ms = max(read_ms + int(passed_ms), record.updated_at_ms)
        if record.due_at_ms is not None and record.due_at_ms <= now_ms:
            return None  # a tick may have changed it
        return Saved(record, now_ms, head=head, saved_at_ms=monotonic_ms())

    async def read_handed(self, suspension_id: str, packed: bytes) -> Saved:
        """Return a run that was handed to this process, leased to it, as of now; raises `Unreadable`."""
        record, head, *_ = self._read_copy(suspension_id, packed)
        now_ms = max(await self.read_time_ms(), record.updated_at_ms)
        self.starts.note(Start(now_ms, suspension_id, packed))
        await self.confirm()
        at_ms = monotonic_ms()
        return Saved(record, now_ms, head=head, saved_at_ms=at_ms, sent_at_ms=at_ms)

    def unpack(self, suspension_id: str, packed: bytes) -> tuple[SuspensionRecord, TrailHead]:
        """Return a record and the head of its trail from what a process has kept of it; raises `Unreadable`."""
        record, head, *_ = read_record(self._sealer, suspension_id, packed)
        return record, head

    def _read_copy(self, suspension_id: str, packed: bytes) -> Unpacked:
        checked = self._connections.macs.check(self._keys.suspension(suspension_id), packed)
        return read_record(self._sealer, suspension_id, checked)

    def _recall(self, suspension_id: str, known: Saved | None, *, new: bool) -> State | None:
        """Return the suspension as cached, None where it must be read; the guards of the commit notice changes."""
        known = known or self._recent.pop(suspension_id, None)
        if self._readings.doubts(suspension_id):
            return None  # the cached record would overwrite one that is now unreadable
        if known is not None:
            return known.as_state()
        read_ms, at_ms = self._connections.time_read
        passed_ms = monotonic_ms() - at_ms
        if not new or passed_ms > _READING_MS:
            return None
        return State(None, max(read_ms + int(passed_ms), self.mark_ms()), TrailHead(), fresh=False)

    def _remember(self, saved: Saved) -> None:
        if saved.record.status is Status.PENDING:
            self._recent[saved.record.id] = saved
            if len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)

    def _read_time(self, seconds: Any, micros: Any) -> int:
        now_ms = as_ms(seconds, micros)
        self._connections.time_read = (now_ms, monotonic_ms())
        return now_ms

    async def _run_commit(self, attempt: _Attempt) -> Saved | None:
        keys, args = attempt.commit.arguments(self._connections.macs)
        if attempt.starts:
            await self._connections.changes.ready()
            self.counts.check_settled(attempt.epoch)  # and no other task runs before the commit is sent
        failed_guard, *reply = await self._commit(keys=keys, args=args)
        if attempt.commit.is_uncounted(failed_guard):
            await self.counts.require()
            return None
        if failed_guard in attempt.commit.lasting:
            raise NotAuthenticated("The instance was deleted; nothing was suspended.")
        if failed_guard in attempt.commit.totals:
            raise OverLimit
        if failed_guard in attempt.commit.rooms:
            raise TooManyRequests(attempt.commit.rooms[failed_guard], retry_after_s=ROOM_AFTER_S, limit="open_items")
        if failed_guard:
            self.waiting.forget(attempt.commit.hand_overs.get(failed_guard, ""))
            return None
        *time, number = reply
        now_ms = self._read_time(*time)
        self.counts.note(number, now_ms)
        self._store.note_saved(attempt.commit.update)
        if attempt.starts:
            self.starts.note(Start(now_ms, attempt.saved.record.id, attempt.commit.record))
        return attempt.saved._replace(now_ms=max(now_ms, attempt.saved.now_ms), saved_at_ms=monotonic_ms())

    async def _find(self, suspension_id: str, seen: Idempotency | None) -> State:
        wanted = [self._keys.suspension(suspension_id)]
        if seen is not None:
            wanted.append(self._keys.idempotency(seen.actor, seen.key))
        seconds, micros, *read = await self._load(keys=wanted)
        raw, *requests = self._connections.macs.verify(("MGET", *wanted), read[: len(wanted)])
        request: bytes | None = requests[0] if requests else None
        if request == REFUSED:
            raise describe_altered(wanted[1])
        # After the store's clock went back a little, time stands still until it passes the mark.
        now_ms = max(self._read_time(seconds, micros), self.mark_ms())
        fingerprint, ref = request.decode().split("|", 2)[1:] if request else (None, None)
        if raw is None:
            self._readings.forget(suspension_id)
            return State(None, now_ms, TrailHead(), None, fingerprint, ref)
        record, head, last_commit, _size = self._readings.read(suspension_id, raw)
        return State(record, max(now_ms, record.updated_at_ms), head, last_commit, fingerprint, ref)

    def _prepare(self, state: State, change: Change, seen: Idempotency | None, room: Room | None) -> _Attempt:
        commit_id = os.urandom(6).hex()
        commit, after, head = build_commit(state.record, change, state.head, commit_id, seen, self._store, room=room)
        if not state.fresh:
            due_ms = state.record.due_at_ms if state.record is not None else None
            latest_ms = state.now_ms + _LATE_MS
            commit.between_ms = (state.now_ms - _EARLY_MS, latest_ms if due_ms is None else min(latest_ms, due_ms - 1))
        if change.until_ms:
            first_ms, last_ms = commit.between_ms
            commit.between_ms = (first_ms, min(last_ms or change.until_ms, change.until_ms))
        ref = seen.ref if seen else None
        at_ms = monotonic_ms()
        saved = Saved(after, state.now_ms, False, ref, change.following, head, saved_at_ms=at_ms, sent_at_ms=at_ms)
        self._store.count(commit)
        starts = bool(change.until_ms) or _redeems(change)
        return _Attempt(commit, commit_id, saved, starts, self.counts.epoch)


def _redeems(change: Change) -> bool:
    return any(event.type is EventType.PERMIT_REDEEMED for event in change.events)


def _unchanged(record: SuspensionRecord, state: State) -> Saved:
    return Saved(record, state.now_ms, repeated=True, ref=state.ref, head=state.head, saved_at_ms=monotonic_ms())
