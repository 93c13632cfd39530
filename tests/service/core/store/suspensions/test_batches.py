"""Batches of due suspensions, with a real store: each changes completely or not at all."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from sayso.core.records.chain import find_break
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.transitions.deciding import decide, suspend
from sayso.core.transitions.due import tick
from sayso.errors import Unavailable
from service.core.store.connection.pipeline import Part, Pipeline, Script, Word
from service.core.store.keys import TenantKeys
from service.core.store.precedents import MOST_PRECEDENTS
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.batches import PRECOMPUTED_FOR_MS
from service.core.store.suspensions.saving import Suspensions
from tests.builders import store_of
from tests.proofs.indexes import expect_indexes, read_indexes
from tests.sayso.samples import ask, draft, word

KEYS = TenantKeys("default")
TIMEOUT_S = 300


class CutPipeline(Pipeline):
    """A connection that is cut at a round: before the store has it, or before its answer comes."""

    def __init__(self, pipeline: Pipeline, *, ran: bool) -> None:
        self._steady = pipeline
        self._ran = ran

    async def run(self, *given: Any) -> Any:
        return await self._steady.run(*given)

    async def run_parts(self, script: Script, first: Word, parts: Sequence[Part]) -> Any:
        if self._ran:
            await self._steady.run_parts(script, first, parts)
        raise Unavailable from RedisConnectionError("cut")


class RacedPipeline(Pipeline):
    """A connection whose rounds somebody else is faster than, with one suspension of them."""

    def __init__(self, store: Suspensions, pipeline: Pipeline, suspension_id: str) -> None:
        self._store = store
        self._steady = pipeline
        self._suspension_id = suspension_id

    async def run(self, *given: Any) -> Any:
        return await self._steady.run(*given)

    async def run_parts(self, script: Script, first: Word, parts: Sequence[Part]) -> Any:
        await self._store.change(self._suspension_id, look_freely)
        return await self._steady.run_parts(script, first, parts)


async def create(store: Suspensions, name: str, late_ms: int = 0) -> SuspensionRecord:
    run = draft().run.model_copy(update={"id": f"run_{name}"})
    begun = draft(id=f"sus_{name}", run=run)
    saved = await store.create(begun.id, lambda now_ms: suspend(begun, (ask(timeout_s=TIMEOUT_S),), now_ms - late_ms))
    return saved.record


async def create_due(store: Suspensions, count: int) -> list[str]:
    return [(await create(store, str(number), 2 * TIMEOUT_S * 1000)).id for number in range(count)]


async def create_due_in(store: Suspensions, name: str, ms: int) -> SuspensionRecord:
    return await create(store, name, TIMEOUT_S * 1000 - ms)


def look_freely(record: SuspensionRecord, now_ms: int) -> Change:
    return tick(record, (), now_ms)


async def find(store: Suspensions, suspension_id: str) -> SuspensionRecord:
    found = (await store.read(suspension_id)).record
    assert found is not None
    return found


async def expect_each_decided_once(redis: Redis) -> None:
    held, records = await read_indexes(redis, "default")
    assert {name: held[name] for name in held if held[name]} == expect_indexes(records)
    for record in records:
        trail = await Runs(store_of(redis)).trail(record.run.id)
        assert [entry.type for entry in trail] == ["run_paused", "timed_out", "decided"]
        assert find_break(trail) is None
    entries = cast("list[bytes]", await redis.lrange(KEYS.ready, 0, -1))
    ready = [one.split(b" ")[0].decode() for one in entries]
    assert sorted(ready) == sorted(record.id for record in records)


async def await_moment(store: Suspensions, at_ms: int) -> None:
    while (await store.read("sus_a")).now_ms < at_ms:
        continue


async def test_all_that_are_due_are_decided_in_one_round(redis: Redis, store: Suspensions) -> None:
    ids = await create_due(store, 20)
    assert await store.due_batches.change(ids, look_freely) == []
    await expect_each_decided_once(redis)
    assert await store.due_batches.change(ids, look_freely) == [], "there is nothing to be done again"
    await expect_each_decided_once(redis)


async def test_a_batch_leaves_in_the_store_what_single_changes_leave(redis: Redis, store: Suspensions) -> None:
    def approve(record: SuspensionRecord, now_ms: int) -> Change:
        return decide(record, word(record), now_ms)

    async def measure() -> dict[bytes, int]:
        sizes = {b"list": redis.llen, b"zset": redis.zcard, b"hash": redis.hlen, b"set": redis.scard}
        names = [name async for name in redis.scan_iter()]
        kinds = [cast("bytes", await redis.type(name)) for name in names]
        return {
            name: await cast("Any", sizes[kind](name)) if kind in sizes else 1
            for name, kind in zip(names, kinds, strict=True)
        }

    ids = [(await create(store, str(number))).id for number in range(MOST_PRECEDENTS + 5)]
    for one in ids:
        await store.change(one, approve)
    alone = await measure()
    await redis.flushdb()
    assert ids == [(await create(store, str(number))).id for number in range(MOST_PRECEDENTS + 5)]
    assert await store.due_batches.change(ids, approve) == []
    assert await measure() == alone


async def test_what_cannot_be_changed_is_left_and_holds_up_none(redis: Redis, store: Suspensions) -> None:
    early, due = await create(store, "early"), await create_due(store, 2)
    await redis.set(KEYS.suspension("sus_broken"), b"1|0||c|1nonsense")
    await redis.set(KEYS.suspension("sus_strange"), b"1|0||c|?")

    def verb(record: SuspensionRecord, now_ms: int) -> Change:
        if record.id == due[0]:
            return decide(record, word(record), now_ms)  # refused: its deadline has passed
        return look_freely(record, now_ms)

    left = await store.due_batches.change([due[0], "sus_broken", "sus_gone", early.id, "sus_strange", due[1]], verb)
    assert left == [due[0], "sus_broken", "sus_gone", "sus_strange"]
    assert await find(store, early.id) == early
    assert (await find(store, due[0])).status is Status.PENDING
    assert (await find(store, due[1])).status is Status.DECIDED


async def test_what_somebody_changed_meanwhile_is_left_as_they_left_it(store: Suspensions) -> None:
    ids = await create_due(store, 3)
    store.due_batches._pipelines = cycle([RacedPipeline(store, next(store.due_batches._pipelines), ids[1])])
    assert await store.due_batches.change(ids, look_freely) == [ids[1]]
    assert [(await find(store, one)).version for one in ids] == [2, 2, 2]


@pytest.mark.parametrize("ran", [True, False])
async def test_a_round_whose_answer_is_lost_is_brought_to_its_end_by_the_next(
    redis: Redis, store: Suspensions, ran: bool
) -> None:
    ids = await create_due(store, 4)
    steady = store.due_batches._pipelines
    store.due_batches._pipelines = cycle([CutPipeline(next(steady), ran=ran)])
    with pytest.raises(Unavailable):
        await store.due_batches.change(ids, look_freely)
    states = {(await find(store, one)).status for one in ids}
    assert states == {Status.DECIDED if ran else Status.PENDING}
    store.due_batches._pipelines = steady
    assert await store.due_batches.change(ids, look_freely) == []
    await expect_each_decided_once(redis)


async def test_one_that_the_store_chokes_on_holds_up_no_other(redis: Redis, store: Suspensions) -> None:
    ids = await create_due(store, 3)
    await redis.delete(KEYS.trail("run_1"))
    await redis.set(KEYS.trail("run_1"), "no list")
    assert await store.due_batches.change(ids, look_freely) == [ids[1]]
    held, records = await read_indexes(redis, "default")
    whole = [record for record in records if record.id != ids[1]]
    assert [record.status for record in whole] == [Status.DECIDED] * 2
    assert set(held["decided"]) >= {record.id for record in whole}, "written with others"
    trails = [await Runs(store_of(redis)).trail(record.run.id) for record in whole]
    assert [[entry.type for entry in trail] for trail in trails] == [["run_paused", "timed_out", "decided"]] * 2


async def test_a_round_works_on_a_server_that_has_forgotten_its_scripts(redis: Redis, store: Suspensions) -> None:
    ids = await create_due(store, 2)
    await redis.script_flush()
    assert await store.due_batches.change(ids, look_freely) == []
    await expect_each_decided_once(redis)


async def test_what_is_precomputed_goes_through_at_its_moment_and_not_before(redis: Redis, store: Suspensions) -> None:
    record = await create_due_in(store, "a", 700)
    deadline_ms = record.items[0].terms.deadline_at_ms
    (precomputed,) = await store.due_batches.precompute([record.id], look_freely, deadline_ms + 1)
    assert precomputed.at_ms == deadline_ms
    if await store.due_batches.fulfil([precomputed]):
        assert await find(store, record.id) == record, "it was too early, and nothing came of it"
    await await_moment(store, deadline_ms)
    await store.due_batches.fulfil([precomputed])
    decided = await find(store, record.id)
    assert decided.items[0].outcome is not None
    assert decided.items[0].outcome.at_ms == deadline_ms
    await expect_each_decided_once(redis)
    assert await store.due_batches.fulfil([precomputed]) == [record.id], "once is enough"


async def test_what_was_precomputed_gives_way_to_a_word_in_time(store: Suspensions) -> None:
    record = await create_due_in(store, "a", 5_000)
    deadline_ms = record.items[0].terms.deadline_at_ms
    precomputed = await store.due_batches.precompute([record.id], look_freely, deadline_ms + 1)
    decided = await store.change(record.id, lambda found, now_ms: decide(found, word(found), now_ms))
    await await_moment(store, deadline_ms)
    assert await store.due_batches.fulfil(precomputed) == [record.id]
    assert await find(store, record.id) == decided.record


async def test_what_was_precomputed_and_comes_too_late_is_not_saved_as_of_then(store: Suspensions) -> None:
    record = await create_due_in(store, "a", 300)
    deadline_ms = record.items[0].terms.deadline_at_ms
    precomputed = await store.due_batches.precompute([record.id], look_freely, deadline_ms + 1)
    await await_moment(store, deadline_ms + PRECOMPUTED_FOR_MS + 1)
    assert await store.due_batches.fulfil(precomputed) == [record.id] * len(precomputed)
    assert (await find(store, record.id)).status is Status.PENDING


async def test_only_what_waits_until_then_is_precomputed(store: Suspensions) -> None:
    later, due = await create(store, "later"), await create_due(store, 1)
    decided = await create(store, "decided")
    await store.change(decided.id, lambda found, now_ms: decide(found, word(found), now_ms))
    until_ms = later.items[0].terms.deadline_at_ms
    ids = [later.id, *due, decided.id, "sus_gone"]
    assert await store.due_batches.precompute(ids, look_freely, until_ms) == ()
    assert [one.suspension_id for one in await store.due_batches.precompute(ids, look_freely, until_ms + 1)] == [
        later.id
    ]
    assert await store.due_batches.precompute([later.id], lambda found, _: Change(found), until_ms + 1) == ()


async def test_nothing_is_saved_after_the_time_up_to_which_a_batch_is_valid(redis: Redis, store: Suspensions) -> None:
    ids = await create_due(store, 2)
    now_ms = (await store.read(ids[0])).now_ms
    assert await store.due_batches.change(ids, look_freely, now_ms - 1) == ids
    assert [(await find(store, one)).status for one in ids] == [Status.PENDING] * 2
    assert await store.due_batches.change(ids, look_freely, now_ms + 60_000) == []
    await expect_each_decided_once(redis)


async def test_precomputed_changes_are_not_saved_after_the_time_they_are_valid(store: Suspensions) -> None:
    record = await create_due_in(store, "a", 300)
    deadline_ms = record.items[0].terms.deadline_at_ms
    precomputed = await store.due_batches.precompute([record.id], look_freely, deadline_ms + 1)
    await await_moment(store, deadline_ms)
    assert await store.due_batches.fulfil(precomputed, deadline_ms - 1) == [record.id]
    assert await find(store, record.id) == record
