"""Counters in the real store: guards and writes are one commit, windows slide, and reads agree with guards."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso.core.policy.counters.readings import Wanted
from sayso.core.policy.rule_keys import MOST_SAMPLES
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.items import PresetOutcome
from sayso.core.records.judgements import MAX_TOTAL, Charge, find_slot, first_slot, slot_ms
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deciding import cancel, suspend
from sayso.errors import OverLimit
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.saving import Suspensions
from tests.sayso.samples import ask, draft, person

KEYS = TenantKeys("default")
ALLOWED = PresetOutcome(verdict=Verdict.APPROVED, by=Actor(id="policy", kind=ActorKind.POLICY))
HOUR = 3600


def charge(amount: int = 1, most: int | None = None, counter: str = "c", *, sample: bool = False) -> Charge:
    return Charge(counter=counter, per_s=HOUR, amount=amount, most=most, sample=sample)


async def run(store: Suspensions, name: str, *charges: Charge) -> SuspensionRecord:
    """Save a suspension whose call is allowed with these charges."""
    item = ask().model_copy(update={"preset": ALLOWED, "charges": charges})
    begun = draft(id=f"sus_{name}", run=draft().run.model_copy(update={"id": f"run_{name}"}))
    return (await store.create(begun.id, lambda now_ms: suspend(begun, (item,), now_ms))).record


async def total(store: Suspensions, counter: str = "c") -> int:
    return (await store.recall([Wanted(counter, HOUR)]))[counter].total


async def current_slot(redis: Redis, per_s: int = HOUR) -> int:
    seconds, _ = await redis.time()
    return find_slot(per_s, int(seconds) * 1000)


async def test_commit_counts_up_to_the_limit_and_then_nothing(store: Suspensions, redis: Redis) -> None:
    await run(store, "a", charge(5, 9))
    with pytest.raises(OverLimit):
        await run(store, "b", charge(counter="d"), charge(5, 9))
    assert await redis.exists(KEYS.suspension("sus_b"), KEYS.counter("d")) == 0, "all of a commit or nothing"
    await run(store, "b", charge(4, 9))
    assert await total(store) == 9
    assert 0 < await redis.pttl(KEYS.counter("c")) <= HOUR * 1000 + 3 * slot_ms(HOUR)


async def test_many_at_once_are_never_over(store: Suspensions) -> None:
    done = await asyncio.gather(*(run(store, f"{n}", charge(3, 100)) for n in range(64)), return_exceptions=True)
    refused = [one for one in done if isinstance(one, BaseException)]
    assert len(refused) == 64 - 33
    assert all(isinstance(one, OverLimit) for one in refused)
    assert await total(store) == 99


async def test_call_that_does_not_run_is_taken_back(store: Suspensions) -> None:
    record = await run(store, "a", charge(5, 9), charge(7, counter="s", sample=True))

    def stop(found: SuspensionRecord, now_ms: int) -> Change:
        return cancel(found, person("ada"), None, now_ms)

    await store.change(record.id, stop)
    assert await total(store) == 0
    assert (await store.recall([Wanted("s", HOUR, 95)]))["s"].samples == 0
    await run(store, "b", charge(9, 9))


async def test_two_charges_of_one_commit_fit_together_or_not_at_all(store: Suspensions) -> None:
    with pytest.raises(OverLimit):
        await run(store, "a", charge(5, 9), charge(5, 9))
    await run(store, "a", charge(5, 9), charge(4, 9))
    assert await total(store) == 9


async def test_only_the_period_counts(store: Suspensions, redis: Redis) -> None:
    slot = await current_slot(redis)
    first = first_slot(HOUR, slot)
    await redis.hset(KEYS.counter("c"), mapping={str(first - 2): 50, str(first + 2): 3, str(slot + 5): 4})
    assert await total(store) == 7, "a slot that the store's clock went back from still counts"
    with pytest.raises(OverLimit):
        await run(store, "a", charge(3, 9))
    await run(store, "a", charge(2, 9))
    assert await total(store) == 9


async def test_full_counter_deletes_its_old_slots(store: Suspensions, redis: Redis) -> None:
    first = first_slot(HOUR, await current_slot(redis))
    slots: dict[Any, Any] = {str(first - 2 - n): 1 for n in range(130)} | {str(first + 5): 1}
    await redis.hset(KEYS.counter("c"), mapping=slots)
    await run(store, "a", charge())
    assert await redis.hlen(KEYS.counter("c")) == 2


async def test_charge_of_a_slot_that_is_over_is_refused(store: Suspensions, redis: Redis) -> None:
    slot = await current_slot(redis)
    await run(store, "a", charge().model_copy(update={"slot": slot - 1}))
    with pytest.raises(OverLimit):
        await run(store, "b", charge().model_copy(update={"slot": slot - 3}))
    await run(store, "b", charge().model_copy(update={"slot": slot + 2}))
    assert await total(store) == 2


async def test_counter_without_a_limit_cannot_overflow(store: Suspensions, redis: Redis) -> None:
    slot = await current_slot(redis)
    await redis.hset(KEYS.counter("c"), str(slot), str(MAX_TOTAL + 2**54))
    with pytest.raises(OverLimit):
        await run(store, "a", charge())


async def test_old_charge_is_not_taken_back(store: Suspensions, redis: Redis) -> None:
    record = await run(store, "a", charge(5))
    await redis.delete(KEYS.counter("c"))
    await store.change(record.id, lambda found, now_ms: cancel(found, person("ada"), None, now_ms))
    assert await redis.exists(KEYS.counter("c")) == 0


async def test_latest_amounts_are_kept(store: Suspensions, redis: Redis) -> None:
    slot = await current_slot(redis)
    await redis.rpush(KEYS.counter("s"), f"{slot - 90}|999", *(f"{slot}|{n}" for n in range(MOST_SAMPLES)))
    held = (await store.recall([Wanted("s", HOUR, 90)]))["s"]
    assert (held.samples, held.total) == (MOST_SAMPLES, MOST_SAMPLES * 9 // 10 - 1)
    await run(store, "a", charge(1_000, counter="s", sample=True))
    assert await redis.llen(KEYS.counter("s")) == MOST_SAMPLES
    assert await redis.lindex(KEYS.counter("s"), -1) == f"{slot}|1000".encode()


async def test_nothing_is_read_without_counters(store: Suspensions) -> None:
    assert await store.recall([]) == {}
    read = await store.recall([Wanted("a", HOUR), Wanted("a", HOUR), Wanted("b", HOUR, 95)])
    assert {name: (one.total, one.samples) for name, one in read.items()} == {"a": (0, 0), "b": (0, 0)}
