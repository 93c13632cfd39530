"""A commit writes what follows from the record before and after, each index once, and nothing else."""

from redis.asyncio import Redis

from sayso.core.records.events import TrailHead
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, ResumeSpec, Status, SuspensionRecord
from sayso.core.transitions.deciding import cancel, decide, suspend
from sayso.core.transitions.execution import checkpoint, lease, redeem, release, renew, settle, suspend_again
from service.core.store.connection.commits import Commit
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.commits import Idempotency, Room, build_commit, list_open
from tests.builders import store_of
from tests.sayso.core.transitions.test_execution import DONE, FENCE, decided, leased
from tests.sayso.samples import T0, ask, draft, intent, person, word

KEYS = TenantKeys("default")
STATE = seal_state(b"{}")
STORE = store_of(Redis())
ALWAYS = ["SET s:sus_1", "PUBLISH default", "PUBLISH sus_1", "PUBLISH run_1"]
"""What every commit of the suspension writes: the record, and that it moved."""
BESIDE = ("ZADD IF announcements", "ZADD facts", "HINCRBY unchecked", "HINCRBY totals")
"""What its own tests check: announcements for endpoints, facts for insights and metrics, and events for checkpoints."""


def build(before: SuspensionRecord | None, change: Change, seen: Idempotency | None = None) -> Commit:
    return build_commit(before, change, TrailHead(), "commit", seen, STORE)[0]


def writes_of(commit: Commit) -> list[str]:
    """Return each write of a commit as its command and the key without the tenant's prefix."""
    keys, at, found = list(commit.keys), 0, []
    while at < len(commit.writes):
        count, command, place = commit.writes[at : at + 3]
        key = keys[int(place) - 1].removeprefix(KEYS.prefix).removeprefix("sayso:changes:")
        family = key.partition(":")[0]
        found.append(f"{command!s} {family if family in ('bucket', 'texts') else key}")
        at += 3 + int(count)
    return found


def written(before: SuspensionRecord | None, change: Change) -> set[str]:
    """Return what a change writes beside what every change does, its announcements and facts, each of it once."""
    found = [one for one in writes_of(build(before, change)) if one not in BESIDE]
    assert len(found) == len(set(found))
    assert set(ALWAYS) <= set(found)
    return set(found) - set(ALWAYS)


LAST_APPROVAL = f"SET {KEYS.last_approval('ada', 'bot', 'support', 'refund').removeprefix(KEYS.prefix)}"
PRECEDENTS = KEYS.precedents("bot", "support", "refund").removeprefix(KEYS.prefix)
OPENS = {"ZADD open", "ZADD open-of:bot"}
CLOSES = {"ZREM open", "ZREM open-of:bot"}
FILED = {"ZADD bucket", "HSETNX buckets", "HSET texts"}
UNFILED = {"ZREM bucket", "HDEL UNLESS buckets", "HDEL texts"}
ASKS = {"LPUSH asked-by:refunds", "LTRIM asked-by:refunds"}
PAUSED = {
    "ZADD schedule",
    "ZADD inbox",
    "SET r:run_1",
    "ZADD runs-of:bot",
    "SADD owners",
    "RPUSH e:run_1",
    *OPENS,
    *FILED,
    *ASKS,
}


def test_suspension_is_indexed_in_the_inbox_and_by_owner() -> None:
    assert written(None, suspend(draft(), (ask(),), T0)) == PAUSED


def test_a_run_that_asks_nothing_goes_to_the_workers_and_into_no_inbox() -> None:
    asked = suspend(draft(), (), T0)
    begun = Change(asked.record, asked.events, state=STATE, ready=asked.ready)
    assert written(None, begun) == PAUSED - {"ZADD inbox", *FILED, *ASKS} | {
        "ZADD runs:running",
        "SET state:run_1",
        "RPUSH COPY ready",
    }


def test_ended_suspension_is_never_scheduled() -> None:
    begun = draft(status=Status.CANCELLED)
    assert "schedule" not in " ".join(written(None, Change(begun)))


def test_following_suspension_adds_no_run_to_its_owner() -> None:
    begun = suspend(draft(previous_id="sus_0"), (ask(),), T0)
    assert written(None, begun) == PAUSED - {"ZADD runs-of:bot", "SADD owners"}


def test_a_decision_takes_it_out_of_the_inbox_and_puts_it_before_the_workers() -> None:
    record = suspend(draft(), (ask(),), T0).record
    change = decide(record, word(record), T0)
    moved = {"ZADD schedule", "ZREM inbox", "ZADD decided", "RPUSH COPY ready", "RPUSH e:run_1"}
    approved = {LAST_APPROVAL, *(f"{command} {PRECEDENTS}" for command in ("RPUSH", "LTRIM", "PEXPIRE"))}
    assert written(record, change) == moved | OPENS | CLOSES | UNFILED | approved, (
        "a worker has it in the place of the reviewers"
    )


def test_a_decision_of_a_quorum_only_moves_the_item_to_another_bucket() -> None:
    record = suspend(draft(), (ask(quorum={"approve": 2, "deny": 1}),), T0).record
    change = decide(record, word(record), T0)
    assert written(record, change) == {"ZADD schedule", "ZADD inbox", "RPUSH e:run_1", *FILED, *UNFILED, LAST_APPROVAL}


def test_lease_notifies_and_its_renewal_only_reschedules() -> None:
    record = decided()
    assert written(record, lease(record, "w1", 30_000, T0)) == {"ZADD schedule", "RPUSH e:run_1", "ZADD runs:running"}
    held = leased()
    assert written(held, renew(held, FENCE, T0 + 1)) == {"ZADD schedule"}


def test_a_run_that_is_given_back_goes_to_the_workers_again_and_out_of_no_inbox() -> None:
    held = leased()
    back = {"ZADD schedule", "RPUSH COPY ready", "RPUSH e:run_1", "ZREM runs:running"}
    assert written(held, release(held, FENCE, "stopping", T0)) == back


def test_how_far_it_came_is_written_beside_it() -> None:
    held = redeem(leased(), FENCE, (intent(),), (), T0).record
    assert written(held, checkpoint(held, FENCE, STATE, (), T0)) == {"ZADD schedule", "SET state:run_1"}


def test_end_unschedules_the_suspension_and_moves_the_run() -> None:
    held = leased()
    ended = settle(held, FENCE, DONE, (), T0)
    over = {"ZREM schedule", "RPUSH e:run_1", "ZADD runs:completed", "ZREM runs:running"}
    assert written(held, ended) == over | CLOSES
    assert written(ended.record, Change(ended.record.model_copy(update={"updated_at_ms": T0 + 1}))) == set()


def test_cancelled_suspension_is_in_no_list_of_runs() -> None:
    record = suspend(draft(), (ask(),), T0).record
    change = cancel(record, person("bot"), None, T0)
    over = {"ZREM schedule", "ZREM inbox", "ZADD decided", "RPUSH e:run_1", "ZADD runs:cancelled"}
    assert written(record, change) == over | CLOSES | UNFILED


def test_following_suspension_is_written_with_the_end() -> None:
    held = leased()
    following = draft(id="sus_2")
    change = suspend_again(held, FENCE, following, (ask(),), STATE, (), T0)
    commit = build(held, change)
    found = [one for one in writes_of(commit) if one not in BESIDE]
    assert set(found) - set(ALWAYS) == {
        "ZREM schedule",
        "SET s:sus_2",
        "ZADD schedule",
        "ZADD inbox",
        "SET r:run_1",
        "ZREM runs:running",
        "SET state:run_1",
        "RPUSH e:run_1",
        *OPENS,
        *CLOSES,
        *FILED,
        *ASKS,
    }
    assert commit.guards == [("VERSION", 1, held.version), ("VERSION", commit.keys[KEYS.suspension("sus_2")], 0)]


def test_what_its_own_agent_runs_is_open_until_it_is_decided() -> None:
    record = suspend(draft(resume=ResumeSpec(mode="poll")), (ask(),), T0).record
    assert list_open(record) == ["sus_1 i1"]
    change = decide(record, word(record), T0)
    assert written(record, change) >= CLOSES
    assert list_open(change.record) == []


def test_what_is_asked_needs_room_last_of_all_guards() -> None:
    asked = suspend(draft(), (ask(), ask(1)), T0)
    seen = Idempotency("bot", "k", "f" * 32, "sus_1")
    commit = build_commit(None, asked, TrailHead(), "commit", seen, STORE, room=Room(each=10, all=100))[0]
    assert commit.guards[-2:] == [
        ("MEMBERS", commit.keys[KEYS.open_of("bot")], 8),
        ("MEMBERS", commit.keys[KEYS.open], 98),
    ]
    assert list(commit.rooms) == [3, 4], "the same request again is answered before there is need of room"
    denied = Change(draft(status=Status.CANCELLED))
    assert not build_commit(None, denied, TrailHead(), "commit", None, STORE, room=Room(each=1, all=1))[0].rooms


def test_what_an_instance_asks_needs_that_instance_when_it_is_asked_and_not_later() -> None:
    spec = ResumeSpec(mode="poll", endpoint_id="aap_1", notifies=True)
    asked = suspend(draft(id=f"sus_{'0' * 32}", resume=spec), (ask(),), T0)
    first = build(None, asked)
    assert first.lasting == {2}
    assert first.guards[1:] == [("VERSION", first.keys[KEYS.gone("aap_1")], 0)]
    said = decide(asked.record, word(asked.record), T0)
    later = build(asked.record, said)
    assert (later.lasting, len(later.guards)) == (set(), 1)
    deliveries = [one for one in writes_of(later) if "deliver" in one or "lane" in one]
    assert [one.split(":")[0] for one in deliveries] == ["SET delivery", "ZADD lane", "ZADD deliveries"]
    assert build(None, suspend(draft(), (ask(),), T0)).lasting == set()


def test_a_key_is_kept_with_what_it_made_and_must_be_new() -> None:
    seen = Idempotency("bot", "k", "f" * 32, "sus_1", kept_ms=5)
    commit = build(None, suspend(draft(), (ask(),), T0), seen)
    key = KEYS.idempotency("bot", "k")
    assert commit.guards == [("VERSION", 1, 0), ("VERSION", commit.keys[key], 0)]
    assert f"SET {key.removeprefix(KEYS.prefix)}" in writes_of(commit)
    assert commit.writes[commit.writes.index(f"1|{'f' * 32}|sus_1") :][:3] == [f"1|{'f' * 32}|sus_1", "PX", 5]
