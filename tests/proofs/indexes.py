"""The expected indexes of a tenant, derived from its records, and the actual ones."""

from collections import defaultdict
from typing import Any

from redis.asyncio import Redis

from sayso.core.records.chain import find_break
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.suspensions import RunStatus, Status, SuspensionRecord
from sayso.core.transitions.legal import LEGAL
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.commits import list_open
from service.core.store.suspensions.facets import list_places, name_bucket, write_facets
from service.core.store.suspensions.reading import unpack_record
from service.core.store.suspensions.texts import write_texts

Indexes = dict[str, Any]


def expect_indexes(records: list[SuspensionRecord]) -> Indexes:
    """Return every index that the records imply, except the ready list, which is a hint."""
    expected: Indexes = defaultdict(dict)
    latest: dict[str, SuspensionRecord] = {}
    for record in records:
        if record.due_at_ms is not None:
            expected["schedule"][record.id] = record.due_at_ms
        for one in list_open(record):
            expected["open"][one] = expected[f"open-of:{record.run.owner}"][one] = record.created_at_ms
        for member, place in list_places(record).items():
            name = name_bucket(place.facets)
            expected["buckets"][name] = write_facets(place.facets)
            expected[f"bucket:{name}"][member] = place.deadline_at_ms
            expected[f"texts:{name}"][member] = write_texts(record)[member]
        if record.status is Status.PENDING:
            expected["inbox"][record.id] = record.deadline_at_ms
        elif record.items:
            expected["decided"][record.id] = record.receipt.decided_at_ms or record.updated_at_ms
        if record.following_id is None:
            latest[record.run.id] = record
    for run_id, record in latest.items():
        expected["latest"][run_id] = record.id
        expected[f"runs-of:{record.run.owner}"][run_id] = record.run.started_at_ms
        if record.run_status is not RunStatus.SUSPENDED:
            expected[f"runs:{record.run_status}"][run_id] = record.run.started_at_ms
    return dict(expected)


async def read_indexes(redis: Redis, tenant: str) -> tuple[Indexes, list[SuspensionRecord]]:
    """Return every index and record on the server."""
    keys = TenantKeys(tenant)
    names = [key.decode() async for key in redis.scan_iter(f"{keys.prefix}*".replace("{", "\\{"), count=1000)]
    places = [name.removeprefix(keys.prefix) for name in names]
    sets = [place for place in places if place.startswith(("schedule", "inbox", "decided", "runs", "open", "bucket:"))]
    suspensions = [place for place in places if place.startswith("s:")]
    runs = [place for place in places if place.startswith("r:")]
    pipe = redis.pipeline(transaction=False)
    for place in sets:
        pipe.zrange(keys.prefix + place, 0, -1, withscores=True)
    for place in (*suspensions, *runs):
        pipe.get(keys.prefix + place)
    found = await pipe.execute()
    held: Indexes = {
        place: {member.decode(): int(score) for member, score in members}
        for place, members in zip(sets, found, strict=False)
    }
    for place in (place for place in places if place.startswith("texts:")):
        texts: dict[Any, Any] = await redis.hgetall(keys.prefix + place)
        held[place] = {member.decode(): stored.decode() for member, stored in texts.items()}
    registry: dict[Any, Any] = await redis.hgetall(keys.buckets)
    held["buckets"] = {name.decode(): facets.decode() for name, facets in registry.items()}
    packed = found[len(sets) : len(sets) + len(suspensions)]
    held["latest"] = {
        place.removeprefix("r:"): raw.decode()
        for place, raw in zip(runs, found[len(sets) + len(suspensions) :], strict=True)
    }
    return held, [unpack_record(raw)[0] for raw in packed]


def find_trail_error(trail: list[TrailEntry], status: Status) -> str | None:
    """Return where the event kinds of a trail leave the table, or do not lead to `status`."""
    if (broken := find_break(trail)) is not None:
        return f"the chain is broken at {broken}"
    statuses: set[Status | None] = {None}
    known = {kind for step in LEGAL.values() for kind in step.events}
    for entry in trail:
        kind = EventType(entry.type)
        if kind not in known:
            continue
        statuses = {after for before in statuses for after in _next_statuses(before, kind)}
        if not statuses:
            return f"{entry.seq} {entry.type} follows from no step"
    return None if status in statuses else f"the trail leads to {sorted(map(str, statuses))}, the record is {status}"


_ASKING_NEXT = ("suspend_again", "mark_in_doubt", "supersede")  # the steps after which the next suspension waits


def _next_statuses(before: Status | None, kind: EventType) -> set[Status | None]:
    """Return the statuses that one kind of event can lead to, also in the run's next suspension."""
    found: set[Status | None] = set()
    for verb, step in LEGAL.items():
        events = step.events | ({EventType.RUN_RESUMED} if verb == "redeem" else set())
        if before in step.sources and kind in events:
            found |= LEGAL["suspend"].targets if verb in _ASKING_NEXT else step.targets
            if kind is not EventType.RUN_PAUSED and verb not in ("suspend", "lease"):
                found.add(before)  # the step writes further events
    return found
