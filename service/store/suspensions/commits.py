"""The guards and writes of one commit. Indexes follow from the record before and after the change."""

from dataclasses import dataclass

from sayso.clock import DAY_MS
from sayso.policy.memory.counting import find_counted
from sayso.records.events import TrailHead, write_events
from sayso.records.suspensions import MOST_TOOLS, Change, RunStatus, Status, SuspensionRecord
from sayso.transitions.deliveries import next_delivery_ms
from sayso.transitions.reviewers.masking import mask_contents
from service.store.connection.commits import Commit
from service.store.inbox.facets import Facets, list_places, name_bucket, write_facets
from service.store.insights.event_facts import list_taken
from service.store.insights.facts import write_facts
from service.store.keys import CHANGES, TenantKeys, keys_of
from service.store.memory.counting import count_charges
from service.store.memory.granting import note_grants
from service.store.memory.learning import note_lessons
from service.store.suspensions.announcements import list_announcements
from service.store.suspensions.outbox import LANE, Delivery, draft_message, pack_delivery
from service.store.suspensions.packing import pack_record
from service.store.suspensions.precedents import list_precedents
from service.store.suspensions.rule_hits import HITS_KEPT_MS, MOST_ITEMS, count_hits, list_asked
from service.store.suspensions.turns import TOOLS_KEPT_MS, list_started

IDEMPOTENCY_MS = DAY_MS  # how long an Idempotency-Key is kept


@dataclass(frozen=True)
class Idempotency:
    """One caller's key for one request, identified by its fingerprint."""

    actor: str
    key: str
    fingerprint: str
    ref: str
    kept_ms: int = IDEMPOTENCY_MS


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
    head, entries = write_events(head, mask_contents(change.record, change.events), after.updated_at_ms)
    packed = pack_record(after, head, commit_id, small=small)
    commit.write("SET", keys.suspension(after.id), packed)
    _move_indexes(commit, keys, before, after)
    if change.following is not None:
        following = change.following.model_copy(update={"version": 1})
        commit.expect(keys.suspension(following.id), 0)
        packed = pack_record(following, head, commit_id, small=small)
        commit.write("SET", keys.suspension(following.id), packed)
        _move_indexes(commit, keys, None, following)
    last = change.following or after
    _move_run(commit, keys, before, last)
    if entries:
        commit.write("RPUSH", keys.trail(after.run.id), *entries)
    if change.state is not None:
        commit.write("SET", keys.state(after.run.id), change.state.blob)
    _pass_on(commit, keys, change, last.id)
    if before is None and after.resume.endpoint_id is not None:
        commit.expect_absent(keys.gone(after.resume.endpoint_id))
    _note_rules(commit, keys, before, change, after.updated_at_ms)
    _note_tools(commit, keys, before, after)
    if (message := draft_message(before, after)) is not None:
        write_message(commit, keys, message, after.updated_at_ms)
    for command, key, *args in list_precedents(keys, before, after):
        commit.write(command, key, *args)
    for announcement in list_announcements(before, after, change.following):
        commit.write_if(keys.endpoints, "ZADD", keys.announcements, after.updated_at_ms, announcement)
    facts = write_facts(before, after, change.following, change.events, first_seq)
    if facts is not None:
        commit.write("ZADD", keys.facts, after.updated_at_ms, facts)
    if seen is not None:
        key = keys.idempotency(seen.actor, seen.key)
        commit.expect(key, 0)
        commit.write("SET", key, f"1|{seen.fingerprint}|{seen.ref}", "PX", seen.kept_ms)
    if room is not None:
        _expect_room(commit, keys, after, room)
    counted = find_counted(before, change)
    count_charges(commit, keys, counted, after.updated_at_ms)
    note_grants(commit, keys, counted, change, after.updated_at_ms)
    changed = after.id if change.following is None else f"{after.id} {change.following.id}"
    for topic in (after.tenant, after.id, after.run.id):
        commit.write("PUBLISH", CHANGES + topic, changed)
    return commit, after, head


def _pass_on(commit: Commit, keys: TenantKeys, change: Change, suspension_id: str) -> None:
    """Put the suspension and its record on the ready list, or on that of the worker it is handed to."""
    record = keys.suspension(suspension_id)
    if change.ready:
        commit.push_copy(keys.ready, f"{suspension_id} ", record)
    elif change.handed_to:
        commit.expect_waiting(keys, change.handed_to)
        commit.push_copy(keys.handed(change.handed_to), f"{suspension_id} ", record)


def write_message(commit: Commit, keys: TenantKeys, message: Delivery, at_ms: int) -> None:
    """Save a new message, to be sent at `at_ms`."""
    commit.write("SET", keys.delivery(message.id), pack_delivery(message, 1))
    commit.write("ZADD", keys.lane(message.endpoint_id), at_ms, message.id)
    commit.write("ZADD", keys.deliveries, "LT", at_ms, f"{LANE}{message.endpoint_id}")


def _move_indexes(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, after: SuspensionRecord) -> None:
    if after.due_at_ms is not None:
        commit.write("ZADD", keys.schedule, after.due_at_ms, after.id)
    elif before is not None and before.due_at_ms is not None:
        commit.write("ZREM", keys.schedule, after.id)
    _move_open(commit, keys, before, after)
    _move_buckets(commit, keys, before, after)
    _move_cards(commit, keys, before, after)
    was_pending = before is not None and before.status is Status.PENDING
    if after.status is Status.PENDING:
        commit.write("ZADD", keys.inbox, after.deadline_at_ms or 0, after.id)
    elif after.items and (was_pending or before is None):
        commit.write("ZREM", keys.inbox, after.id)
        commit.write("ZADD", keys.decided, after.updated_at_ms, after.id)


def list_open(record: SuspensionRecord) -> list[str]:
    """Return the entries that count against the limits: open items, or the run while it is active."""
    if record.status is Status.PENDING:
        return [f"{record.id} {item.item_id}" for item in record.items if item.open]
    at_work = record.status in (Status.DECIDED, Status.RESUMING) and record.resume.mode == "worker"
    return [record.id] if at_work and record.end is None else []


def _move_open(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, after: SuspensionRecord) -> None:
    was, now = list_open(before) if before is not None else [], list_open(after)
    entered, left = [one for one in now if one not in was], [one for one in was if one not in now]
    for key in (keys.open,) if after.is_drill else (keys.open, keys.open_of(after.run.owner)):
        if entered:
            commit.write("ZADD", key, *(part for one in entered for part in (after.created_at_ms, one)))
        if left:
            commit.write("ZREM", key, *left)


def _move_buckets(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, after: SuspensionRecord) -> None:
    was, now = list_places(before), list_places(after)
    if not (was or now):
        return
    left: dict[str, list[str]] = {}
    for member, place in was.items():
        if member not in now or now[member].facets != place.facets:
            left.setdefault(name_bucket(place.facets), []).append(member)
    entered: dict[Facets, list[str | int]] = {}
    for member, place in now.items():
        if was.get(member) != place:
            entered.setdefault(place.facets, []).extend((place.deadline_at_ms, member))
    for bucket, members in left.items():
        commit.write("ZREM", keys.bucket(bucket), *members)
        commit.write_unless(keys.bucket(bucket), "HDEL", keys.buckets, bucket)
    for facets, scored in entered.items():
        bucket = name_bucket(facets)
        commit.write("HSETNX", keys.buckets, bucket, write_facets(facets))
        commit.write("ZADD", keys.bucket(bucket), *scored)


def _move_cards(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, after: SuspensionRecord) -> None:
    at_ms = next_delivery_ms(after)
    if at_ms is not None:
        commit.write("ZADD", keys.cards, at_ms, after.id)
    elif before is not None and next_delivery_ms(before) is not None:
        commit.write("ZREM", keys.cards, after.id)


def _note_rules(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, change: Change, at_ms: int) -> None:
    if hits := count_hits(change.events):
        key = keys.rule_hits(at_ms // DAY_MS)
        for rule_id, count in hits.items():
            commit.write("HINCRBY", key, rule_id, count)
        commit.write("PEXPIRE", key, HITS_KEPT_MS)
    if taken := list_taken(change.record.run.id, change.events):
        commit.write("ZREM", keys.second_look, *taken)
    for rule_id, entries in list_asked(before, change).items():
        key = keys.asked_by(rule_id)
        commit.write("LPUSH", key, *entries)
        commit.write("LTRIM", key, 0, MOST_ITEMS - 1)
    note_lessons(commit, keys, before, change)


def _note_tools(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, after: SuspensionRecord) -> None:
    """Add the tools that start to those of the thread; the names beyond `MOST_TOOLS` are not needed."""
    started = list_started(before, after)
    if not started:
        return
    key = keys.thread_tools(after.run.owner, after.run.thread_id)
    scored = ((f"{after.updated_at_ms}.{place:03}", name) for place, name in enumerate(started))
    commit.write("ZADD", key, "NX", *(part for pair in scored for part in pair))
    commit.write("ZREMRANGEBYRANK", key, MOST_TOOLS + 1, -1)
    commit.write("PEXPIRE", key, TOOLS_KEPT_MS)


def _expect_room(commit: Commit, keys: TenantKeys, after: SuspensionRecord, room: Room) -> None:
    """Count in the index of the same commit, which no crash can falsify."""
    opens, owner = len(list_open(after)), after.run.owner
    if not opens:
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
