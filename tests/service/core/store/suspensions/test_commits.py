"""One commit a change, against the real server: all of it or none, under races and lost replies."""

import asyncio
from functools import partial
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from sayso.core.records.chain import find_break
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.deadlines import expire
from sayso.core.transitions.deciding import decide, suspend
from sayso.errors import AlreadyDecided, IdempotencyConflict, NotFound, SaysoError, Unavailable
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import connect
from service.core.store.connection.macs import Macs
from service.core.store.keys import TenantKeys
from service.core.store.runs.runs import Run, Runs
from service.core.store.suspensions.commits import Idempotency
from service.core.store.suspensions.saving import Begin, Suspensions, Verb
from tests.builders import store_of
from tests.sayso.samples import ask, draft, word

KEYS = TenantKeys("default")


async def create(store: Suspensions, suspension_id: str = "sus_1", **terms: Any) -> SuspensionRecord:
    begun = draft(id=suspension_id)
    saved = await store.create(suspension_id, lambda now_ms: suspend(begun, (ask(**terms),), now_ms))
    return saved.record


def approve(by: str) -> Verb:
    def verb(record: SuspensionRecord, now_ms: int) -> Change:
        return decide(record, word(record, by=by, id=f"dec_{by}"), now_ms)

    return verb


async def test_what_is_saved_is_found_again_in_its_place_in_every_index(redis: Redis, store: Suspensions) -> None:
    record = await create(store)
    found = await store.read("sus_1")
    assert found.record == record
    assert record.version == 1
    deadline = record.items[0].terms.deadline_at_ms
    assert await redis.zscore(KEYS.schedule, "sus_1") == deadline
    assert await redis.zscore(KEYS.inbox, "sus_1") == deadline
    (run,) = await Runs(store_of(redis)).list_runs()
    assert isinstance(run, Run)
    assert run.status == "suspended"
    (waiting,) = await Runs(store_of(redis)).list_runs(status="suspended", owner="bot")
    assert isinstance(waiting, Run)
    assert waiting.id == "run_1"
    assert await redis.llen(KEYS.ready) == 0


async def test_a_decision_moves_every_index_in_the_same_commit(redis: Redis, store: Suspensions) -> None:
    await create(store)
    saved = await store.change("sus_1", approve("ada"))
    assert (saved.record.status, saved.record.version) == (Status.DECIDED, 2)
    assert await redis.zcard(KEYS.inbox) == 0
    assert await redis.zrange(KEYS.decided, 0, -1) == [b"sus_1"]
    assert [one.split(b" ")[0] for one in await ready(redis)] == [b"sus_1"]
    assert await redis.zscore(KEYS.schedule, "sus_1") == saved.record.due_at_ms


async def test_one_of_fifty_racing_reviewers_wins_and_others_learn_who(store: Suspensions, redis: Redis) -> None:
    await create(store)
    names = [f"reviewer-{number}" for number in range(50)]
    results = await asyncio.gather(*(store.change("sus_1", approve(name)) for name in names), return_exceptions=True)
    winners = [name for name, result in zip(names, results, strict=True) if not isinstance(result, BaseException)]
    assert len(winners) == 1
    losers = [result for result in results if isinstance(result, BaseException)]
    assert all(isinstance(loser, AlreadyDecided) and loser.facts["decided_by"] == winners[0] for loser in losers)
    trail = await Runs(store_of(redis)).trail("run_1")
    assert [entry.type for entry in trail] == ["run_paused", "decision_recorded", "decided"]
    assert find_break(trail) is None


async def test_racing_decision_and_timeout_have_one_outcome(store: Suspensions, redis: Redis) -> None:
    for number in range(200):
        run = draft().run.model_copy(update={"id": f"run_{number}"})
        begun = draft(id=f"sus_{number}", run=run)
        await store.create(begun.id, partial(suspend, begun, (ask(timeout_s=1),)))

        def late(record: SuspensionRecord, _: int) -> Change:
            return expire(record, record.items[0].terms.deadline_at_ms)

        def expire_if_open(record: SuspensionRecord, now_ms: int) -> Change:
            return late(record, now_ms) if record.status is Status.PENDING else Change(record)

        decided, expired = await asyncio.gather(
            store.change(begun.id, approve("ada")),
            store.change(begun.id, expire_if_open),
            return_exceptions=True,
        )
        assert not isinstance(expired, BaseException)
        found = await store.read(begun.id)
        assert found.record is not None
        outcome = found.record.items[0].outcome
        assert outcome is not None
        assert (outcome.by.id == "ada") == (not isinstance(decided, BaseException))
        types = [entry.type for entry in await Runs(store_of(redis)).trail(f"run_{number}")]
        assert types.count("decided") == 1


async def test_the_same_key_answers_the_same_and_another_request_under_it_is_refused(store: Suspensions) -> None:
    await create(store)
    seen = Idempotency("ada", "k1", "f1", "sus_1")
    first = await store.change("sus_1", approve("ada"), seen)
    again = await store.change("sus_1", approve("ada"), seen)
    assert (first.repeated, again.repeated) == (False, True)
    assert again.record.version == first.record.version
    with pytest.raises(IdempotencyConflict):
        await store.change("sus_1", approve("ada"), Idempotency("ada", "k1", "f2", "sus_1"))


async def test_a_creation_repeated_under_its_key_returns_the_first_one(store: Suspensions, redis: Redis) -> None:
    def begin(suspension_id: str) -> Begin:
        return lambda now_ms: suspend(draft(id=suspension_id), (ask(),), now_ms)

    first = await store.create("sus_1", begin("sus_1"), Idempotency("bot", "k", "f", "sus_1"))
    again = await store.create("sus_2", begin("sus_2"), Idempotency("bot", "k", "f", "sus_2"))
    assert (again.record.id, again.repeated) == (first.record.id, True)
    assert not await redis.exists(KEYS.suspension("sus_2"))


async def test_refused_transition_changes_no_key(store: Suspensions, redis: Redis) -> None:
    await create(store)
    before = await dump(redis)
    with pytest.raises(SaysoError):
        await store.change("sus_1", lambda record, now: decide(record, word(record, args_digest="0" * 64), now))
    with pytest.raises(NotFound):
        await store.change("sus_unknown", approve("ada"))
    with pytest.raises(NotFound):
        await Suspensions(store_of(redis, "other")).change("sus_1", approve("ada"))
    assert await dump(redis) == before


async def test_a_malformed_write_is_refused_before_anything_is_written(store: Suspensions, redis: Redis) -> None:
    await create(store)
    before = await dump(redis)
    commit = Commit()
    commit.write("ZADD", KEYS.schedule, 5, "sus_1")
    commit.write("FLUSHALL", KEYS.schedule)
    keys, args = commit.arguments(Macs())
    with pytest.raises(Unavailable, match="malformed write FLUSHALL"):
        await store._commit(keys=keys, args=args)
    nowhere = Commit()
    nowhere.write("ZADD", KEYS.schedule, 5, "sus_1")
    with pytest.raises(Unavailable, match="malformed write ZADD"):
        await store._commit(keys=[], args=nowhere.arguments(Macs())[1])
    with pytest.raises(Unavailable, match="malformed write SADD"):
        await store._commit(keys=keys, args=[*args[:8], 3, "SADD", 1, "fewer"])
    assert await dump(redis) == before


class LosesReplies:
    """A script that runs and whose reply never arrives, the first `times` it is called."""

    def __init__(self, script: object, times: int, *, runs: bool) -> None:
        self.script, self.times, self.runs = script, times, runs

    async def __call__(self, **arguments: object) -> object:
        if self.times > 0:
            self.times -= 1
            if self.runs:
                await self.script(**arguments)  # type: ignore[operator]
            raise Unavailable from RedisConnectionError("the reply was lost")
        return await self.script(**arguments)  # type: ignore[operator]


@pytest.mark.parametrize("runs", [True, False], ids=["after the command ran", "before it ran"])
async def test_a_lost_reply_is_settled_by_reading_again(store: Suspensions, redis: Redis, runs: bool) -> None:
    await create(store)
    store._commit = LosesReplies(store._commit, 1, runs=runs)  # type: ignore[assignment]
    saved = await store.change("sus_1", approve("ada"))
    assert saved.record.status is Status.DECIDED
    assert [one.split(b" ")[0] for one in await ready(redis)] == [b"sus_1"]
    types = [entry.type for entry in await Runs(store_of(redis)).trail("run_1")]
    assert types == ["run_paused", "decision_recorded", "decided"]


async def test_a_store_that_is_away_is_said_to_be_and_nothing_else_happens() -> None:
    away = connect("redis://127.0.0.1:1/0")
    with pytest.raises(Unavailable):
        await Suspensions(store_of(away)).read("sus_1")
    await away.aclose()


async def test_a_full_server_refuses_the_whole_commit(store: Suspensions, redis: Redis) -> None:
    await create(store)
    before = await dump(redis)
    limit = (await redis.config_get("maxmemory"))["maxmemory"]
    assert limit is not None
    await redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable):
            await store.change("sus_1", approve("ada"))
    finally:
        await redis.config_set("maxmemory", limit)
    assert await dump(redis) == before


async def test_state_and_definitions_are_found_by_what_vouches_for_them(store: Suspensions, redis: Redis) -> None:
    sealed = seal_state(b'{"messages": []}')
    begun = draft(state=sealed.ref)

    def begin(now_ms: int) -> Change:
        change = suspend(begun, (), now_ms)
        return Change(change.record, change.events, state=sealed, ready=change.ready)

    await store.create(begun.id, begin)
    assert await Runs(store_of(redis)).state("run_1", sealed.ref) == b'{"messages": []}'


async def ready(redis: Redis) -> list[bytes]:
    """What is ready for the workers, as it stands in the store."""
    return cast("list[bytes]", await redis.lrange(KEYS.ready, 0, -1))


async def dump(redis: Redis) -> dict[bytes | str, bytes | None]:
    """Every key with its serialised value."""
    return {key: await redis.dump(key) for key in sorted(await redis.keys("*"))}


async def test_what_may_be_saved_up_to_a_moment_only_is_not_saved_after_it(store: Suspensions) -> None:
    record = await create(store)

    def in_time(by_ms: int) -> Verb:
        def verb(found: SuspensionRecord, now_ms: int) -> Change:
            return decide(found, word(found), now_ms)._replace(until_ms=now_ms + by_ms)

        return verb

    with pytest.raises(Unavailable):
        await store.change("sus_1", in_time(-1))
    assert (await store.read("sus_1")).record == record
    assert (await store.change("sus_1", in_time(60_000))).record.status is Status.DECIDED
