"""Searches for unreadable records and damaged trails: a cheap sample for `/readyz`, a full pass for `sayso doctor`."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms
from sayso.core.records.chain import ChainCheck, find_break
from sayso.core.records.decisions import RUNNING
from sayso.core.records.events import EventType, TrailEntry, TrailHead
from sayso.errors import Unreadable
from service.core.store.connection.connecting import text
from service.core.store.runs.runs import Runs, read_entry
from service.core.store.suspensions.reading import Readings, UnreadableRecord
from service.core.store.suspensions.saving import Suspensions
from service.core.store.suspensions.schedule import Schedule
from service.core.store.tenants import StorePart

_DECIDING = (EventType.DECISION_RECORDED, EventType.TIMED_OUT)


def find_chain_fault(entries: Sequence[TrailEntry]) -> str:
    """Return what is wrong inside a whole trail: a changed event, or a call that nobody decided; or nothing."""
    broken = find_break([*entries])
    return name_break(broken) if broken is not None else describe_undecided(entries)


def name_break(seq: int) -> str:
    """Return the sentence about the first event that does not fit the chain."""
    return (
        f"Event {seq} does not follow from the event before it: the trail was altered in the middle. "
        "Do not trust it or any later event."
    )


def describe_undecided(entries: Sequence[TrailEntry]) -> str:
    """Return which call started although the trail has no decision that lets it run; empty if there is none."""
    allowed: set[str] = set()
    decided: set[tuple[str, str]] = set()
    suspension_id, calls = "", dict[str, str]()
    for entry in entries:
        data = entry.data
        place = _read(data, "suspension_id", suspension_id), _read(data, "item_id")
        call_id = _read(data, "call_id", calls.get(place[1], ""))
        allowed.discard("")  # a call without an id needs a decision on its item
        if entry.type == EventType.POLICY_DECISION and data.get("action") == "allow":
            allowed.add(call_id)
        elif entry.type == EventType.RUN_PAUSED:
            said = data.get("payload")
            payload = said if isinstance(said, dict) else {}
            items = payload.get("items")
            rows = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
            suspension_id = _read(payload, "suspension_id")
            calls = {_read(row, "item_id"): _read(row, "call_id") for row in rows}
        elif entry.type in _DECIDING and _read(data, "verdict") in RUNNING:
            decided.add(place)
            allowed.add(calls.get(place[1], call_id))
        elif entry.type == EventType.RESULT_REPORTED:
            decided.add((suspension_id, place[1]))
        elif entry.type == EventType.PERMIT_REDEEMED and place[1] and place not in decided and call_id not in allowed:
            return f"Event {entry.seq} starts a call that nobody decided: the trail has no decision on it."
    return ""


def _read(data: JsonObject, name: str, default: str = "") -> str:
    """Return a text of an event, which may have been forged; the default without one."""
    value = data.get(name)
    return value if isinstance(value, str) else default


_BATCH = 1_000
_MOST_EVENTS = 5_000
_ROUNDS = 10  # attempts to read a run that moves to its next suspension at the same time


class TrailEnd(NamedTuple):
    """The head of a run's trail as its record says, None if unknown, and its actual one."""

    run_id: str
    head: TrailHead | None
    actual: TrailHead

    @property
    def fault(self) -> str:
        """The difference in one sentence; empty if there is none."""
        head, actual = self.head, self.actual
        if head is None or actual == head:
            return ""
        if actual.seq < head.seq:
            gone = head.seq - actual.seq
            return (
                f"The trail was cut: the run's record names {head.seq} events, and {actual.seq} are there. "
                f"{gone} {'is' if gone == 1 else 'are'} missing."
            )
        if actual.seq > head.seq:
            return f"Events were added to the trail: the run's record names {head.seq}, and {actual.seq} are there."
        return f"The trail was altered: its last event, {head.seq}, is not the one that the run's record names."


class Trails(StorePart):
    """The ends of the trails of one tenant."""

    async def find_end(self, run_id: str) -> TrailEnd:
        """Return the end of a run's trail. Read it before the events: more may be added in between."""
        return (await self.find_ends([run_id]))[0]

    async def find_ends(self, run_ids: Sequence[str]) -> list[TrailEnd]:
        ends: dict[str, TrailEnd] = {}
        for _ in range(_ROUNDS):
            missing = [run_id for run_id in run_ids if run_id not in ends]
            if not missing:
                break
            ends |= await self._read(missing)
        return [ends.get(run_id, TrailEnd(run_id, None, TrailHead())) for run_id in run_ids]

    async def find_fault(self, run_id: str, *, most: int = _MOST_EVENTS) -> str:
        """Return what is wrong inside a trail, of up to `most` events, if a second read finds it, too; or nothing."""
        fault = ""
        for _ in range(2):
            events: list[Any] = []
            while len(events) < most:
                end = min(len(events) + _BATCH, most)
                page: list[Any] = await self._redis.lrange(self._keys.trail(run_id), len(events), end - 1)
                events += page
                if len(page) < _BATCH:
                    break
            fault = await asyncio.to_thread(_find_fault, events)
            if not fault:
                break
        return fault

    async def find_slice_fault(self, run_id: str, entries: Sequence[TrailEntry]) -> str:
        """Return which of these consecutive events does not fit the event before it; empty if all do."""
        head = TrailHead()
        if entries and entries[0].seq > 1:
            raw: Any = await self._redis.lindex(self._keys.trail(run_id), entries[0].seq - 2)
            before = read_entry(raw or b"", entries[0].seq - 1)
            head = TrailHead(before.seq, before.hash)
        check = ChainCheck(head)

        def find_fault() -> str:
            broken = next((entry.seq for entry in entries if not check.accept(entry)), None)
            return "" if broken is None else name_break(broken)

        return await asyncio.to_thread(find_fault)

    async def _read(self, run_ids: Sequence[str]) -> dict[str, TrailEnd]:
        """Return the ends of those runs that did not move to their next suspension meanwhile."""
        keys = self._keys
        latest: list[Any] = await self._redis.mget([keys.run(run_id) for run_id in run_ids])
        async with self._redis.pipeline(transaction=True) as pipe:
            for run_id, suspension in zip(run_ids, latest, strict=True):
                pipe.mget(keys.run(run_id), keys.suspension(text(suspension or b"")), keys.head(run_id))
                pipe.llen(keys.trail(run_id))
                pipe.lindex(keys.trail(run_id), -1)
            replies = await pipe.execute()
        ends: dict[str, TrailEnd] = {}
        for place, (run_id, suspension) in enumerate(zip(run_ids, latest, strict=True)):
            (now_latest, raw, kept), length, last = replies[3 * place : 3 * place + 3]
            if now_latest == suspension:
                head = self._read_head(text(suspension or b""), raw, kept)
                actual = TrailHead(length, read_entry(last, length).hash if last else "")
                ends[run_id] = TrailEnd(run_id, head, actual)
        return ends

    def _read_head(self, suspension_id: str, raw: bytes | None, kept: bytes | None) -> TrailHead | None:
        if raw is not None:
            try:
                return self._readings.read(suspension_id, raw).head
            except Unreadable:
                return None
        if kept is None:
            return None
        seq, _, hash_ = text(kept).partition("|")
        return TrailHead(int(seq), hash_) if seq.isdigit() else None


def _find_fault(events: Sequence[bytes]) -> str:
    return find_chain_fault([read_entry(raw, seq) for seq, raw in enumerate(events, start=1)])


_SAMPLE = 50
_SAMPLE_EVERY_MS = 5_000
_AT_ONCE = 50  # how many records are read at once; takes some milliseconds, and other requests run in between
_MOST = 5_000


@dataclass
class Inspections:
    """Unreadable records and damaged trails of one tenant."""

    suspensions: Suspensions
    runs: Runs
    trails: Trails
    schedule: Schedule
    readings: Readings
    sampled_at_ms: float = -_SAMPLE_EVERY_MS

    async def sample(self) -> list[UnreadableRecord]:
        """Return the unreadable records known to this process, after reading a sample every 5 s."""
        if monotonic_ms() - self.sampled_at_ms >= _SAMPLE_EVERY_MS:
            self.sampled_at_ms = monotonic_ms()
            await self._read(await self._list_ids(_SAMPLE))
        return self.readings.list_unreadable()

    async def look_through(self, most: int = _MOST) -> tuple[int, list[UnreadableRecord]]:
        """Read all waiting records and the newest others; return their number and the unreadable ones."""
        ids = await self._list_ids(most)
        await self._read(ids)
        return len(ids), self.readings.list_unreadable()

    async def look_through_trails(self, most: int = _MOST) -> tuple[int, dict[str, str]]:
        """Check the newest trails; return their number, and the fault of each run whose trail is damaged."""
        run_ids = await self.runs.list_ids(most)
        faults: dict[str, str] = {}
        for some in _divide(run_ids):
            ends: list[TrailEnd] = await self.trails.find_ends(some)
            faults |= {end.run_id: end.fault for end in ends if end.fault}
            for run_id in some:
                if run_id not in faults and (fault := await self.trails.find_fault(run_id)):
                    faults[run_id] = fault
        return len(run_ids), faults

    async def _list_ids(self, limit: int) -> list[str]:
        known = [record.suspension_id for record in self.readings.list_unreadable() if " " not in record.suspension_id]
        waiting = await self.runs.inbox(limit=limit)
        scheduled = (await self.schedule.everything())[:limit]
        decided = await self.runs.decided(limit=limit)
        return list(dict.fromkeys([*known, *waiting, *scheduled, *decided, *await self.runs.latest(limit)]))

    async def _read(self, ids: Sequence[str]) -> None:
        for some in _divide(ids):
            await self.suspensions.read_page(some)


def _divide(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield [*ids[start : start + _AT_ONCE]]
