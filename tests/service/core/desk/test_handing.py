"""A decision hands its run to a worker that waits; otherwise the run goes to the ready list."""

from dataclasses import replace

import pytest
from redis import Redis as BlockingRedis

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import ResumeSpec, RunRef, Status, SuspensionRecord
from sayso.core.transitions.execution import WaitingWorker
from service.assembly import assemble
from service.core.store.connection.commits import MOST_HANDED
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.schedule import Ready
from service.core.wiring import Wiring
from tests.builders import person
from tests.workers.resume.resumers.test_calls import CALLS
from tests.workers.runs import POLICY
from workers.clock.ticks import take_back_handed

W1 = WaitingWorker("w1", 30_000)
REMEMBERING = """
version: 1
default: request_approval
rules:
  - {id: a-few, tool: look_up, action: allow, limit: {count: 2, per: 1h}}
"""


@pytest.fixture
def rules() -> str:
    return POLICY


@pytest.fixture
def keys(wiring: Wiring) -> TenantKeys:
    return TenantKeys(wiring.tenant)


async def ask_and_approve(wiring: Wiring, run_id: str = "run_x") -> SuspensionRecord:
    """Bring one call from outside, and approve it."""
    run = RunRef(id=run_id, agent="a", owner="bot", thread_id="t")
    call = CALLS[1].call.model_copy(update={"index": 0})
    asked = await wiring.desk.suspend(run, (replace(CALLS[1], call=call),), ResumeSpec(resumer="calls"), "continue")
    return await approve_again(wiring, asked.record)


async def approve_again(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    request = DecisionRequest(action="approve", digest=record.items[0].digest)
    saved = await wiring.desk.decide(record.id, "i1", request, person("ada"), f"key {record.id}")
    return saved.record


async def take(wiring: Wiring) -> list[Ready]:
    return await wiring.schedule.take(0.1, 8, W1.name)


async def test_decision_hands_its_run_to_a_waiting_worker(wiring: Wiring) -> None:
    await wiring.desk.suspensions.waiting.announce(W1.name)
    record = await ask_and_approve(wiring)
    assert (record.status, record.lease and record.lease.holder) == (Status.RESUMING, "w1")
    (taken,) = await take(wiring)
    assert (taken.id, taken.handed) == (record.id, True)
    read = await wiring.desk.suspensions.read_handed(taken.id, taken.packed)
    assert read.record == record
    assert (await approve_again(wiring, record)).version == record.version, "it is decided once"
    assert await take(wiring) == []


async def test_run_goes_to_the_ready_list_after_the_worker_ended_its_waiting(wiring: Wiring) -> None:
    waiting = wiring.desk.suspensions.waiting
    await waiting.announce(W1.name)
    await waiting.look()
    async with assemble(wiring.settings) as other:
        await other.desk.suspensions.waiting.announce(W1.name, 0)
    record = await ask_and_approve(wiring)
    assert (record.status, waiting.choose()) == (Status.DECIDED, None)
    assert [one.handed for one in await take(wiring)] == [False]


async def test_run_waits_behind_the_runs_on_the_ready_list(wiring: Wiring, keys: TenantKeys) -> None:
    await wiring.desk.suspensions.waiting.announce(W1.name)
    with BlockingRedis.from_url(wiring.settings.store_url) as redis:
        redis.rpush(keys.ready, b"sus_first ")
    assert (await ask_and_approve(wiring)).status is Status.DECIDED


async def test_worker_gets_up_to_a_limit_of_runs(wiring: Wiring, keys: TenantKeys) -> None:
    await wiring.desk.suspensions.waiting.announce(W1.name)
    with BlockingRedis.from_url(wiring.settings.store_url) as redis:
        redis.rpush(keys.handed(W1.name), *([b"sus_before "] * (MOST_HANDED - 1)))
        assert (await ask_and_approve(wiring, "run_1")).status is Status.RESUMING
        assert (await ask_and_approve(wiring, "run_2")).status is Status.DECIDED
        assert redis.llen(keys.handed(W1.name)) == MOST_HANDED


async def test_frozen_run_goes_to_the_ready_list(wiring: Wiring) -> None:
    await wiring.desk.suspensions.waiting.announce(W1.name)
    await wiring.freezes.freeze("agent:other", "odd", person("root"))
    assert (await ask_and_approve(wiring)).status is Status.DECIDED


@pytest.mark.parametrize("rules", [REMEMBERING])
async def test_run_under_rules_that_remember_goes_to_the_ready_list(wiring: Wiring, rules: str) -> None:
    await wiring.desk.suspensions.waiting.announce(W1.name)
    assert (await ask_and_approve(wiring)).status is Status.DECIDED


async def test_clock_takes_back_what_a_gone_worker_never_took(wiring: Wiring) -> None:
    waiting = wiring.desk.suspensions.waiting
    await waiting.announce(W1.name, 200)
    record = await ask_and_approve(wiring)
    assert record.status is Status.RESUMING
    assert await take_back_handed(wiring) == 0, "the worker may still take it"
    while not await take_back_handed(wiring):
        pass
    back = (await wiring.desk.suspensions.read(record.id)).record
    assert (back.status, back.journal, back.items[0].permit) == (Status.DECIDED, (), None)
    assert [(one.id, one.handed) for one in await take(wiring)] == [(record.id, False)]
    kinds = [entry.type for entry in await wiring.runs.trail("run_x")]
    assert kinds[-2:] == ["permit_returned", "run_released"]


@pytest.mark.parametrize("scope", ["all", "tool:refund"])
async def test_handed_call_may_not_start_once_it_is_frozen(wiring: Wiring, scope: str) -> None:
    await wiring.desk.suspensions.waiting.announce(W1.name)
    record = await ask_and_approve(wiring)
    now_ms = record.updated_at_ms
    assert await wiring.desk.may_start(record, now_ms)
    assert not await wiring.desk.may_start(record, record.items[0].start_by_ms)
    await wiring.freezes.freeze(scope, "odd", person("root"))
    assert not await wiring.desk.may_start(record, now_ms)
