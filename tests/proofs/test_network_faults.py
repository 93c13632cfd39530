"""Every step has one effect after any fault of any command between a process and its store.

Every step goes through a proxy that fails each of its commands in turn, in each way. A caller that gets `Unavailable`
repeats its request.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.transitions.execution import Fence
from sayso.errors import AlreadyDecided, Conflict, SaysoError, Unavailable
from service.core.store.connection.connecting import connect
from service.core.store.suspensions.saving import Saved
from service.core.store.suspensions.schedule import Schedule
from service.core.store.tenants import Connections, TenantStore
from service.features.registry import HOOKS
from tests.proofs.network_steps import (
    GIVEN_UP,
    LATE,
    LEASE_MS,
    MAX_COMMANDS,
    REPEATED,
    Call,
    Network,
    check_store,
    prepare_approve,
    prepare_redeem,
    prepare_settle,
    read_result,
    repeat_until_saved,
    start_run,
    suspend_run,
    take_step,
)
from tests.proofs.proxies import RUNS, Fault, running_proxy
from tests.sayso.samples import person


@pytest.fixture
async def network(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Network]:
    redis = connect(clean_store_url)
    async with running_proxy(clean_store_url, tmp_path) as (proxy, url):
        through = connect(url)
        network = Network(proxy, redis, (Connections(through), Connections(redis)))
        await start_run(network)  # so that the server knows the scripts
        yield network
        await through.aclose()
    await redis.aclose()


@pytest.mark.parametrize("step", REPEATED)
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
async def test_repeated_request_has_one_effect_after_any_fault(network: Network, step: str, fault: Fault) -> None:
    prepare, trail, ready = REPEATED[step]
    hits = 0
    for place in range(1, MAX_COMMANDS):
        call = await prepare(network)
        first = await take_step(network, fault, place, call)
        hits += network.proxy.hit.is_set()
        assert isinstance(first, Saved | Unavailable)
        second = await repeat_until_saved(network, call)
        third = await call(network.direct)
        assert second.repeated or isinstance(first, Unavailable)
        assert third.repeated
        assert second.record == third.record
        assert isinstance(first, Unavailable) or first.record == third.record
        assert await check_store(network) == ([third.record], trail, ready)
        if not network.proxy.hit.is_set():
            break
    assert hits >= 1, "no fault hit the step"
    assert not network.proxy.hit.is_set(), "the step has more commands than were tried"


@pytest.mark.parametrize("step", GIVEN_UP)
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
async def test_worker_step_is_atomic_after_any_fault(network: Network, step: str, fault: Fault) -> None:
    prepare, events = GIVEN_UP[step]
    hits = 0
    for place in range(1, MAX_COMMANDS):
        call = await prepare(network)
        records, before, _ = await check_store(network)
        result = await take_step(network, fault, place, call)
        hits += network.proxy.hit.is_set()
        after, trail, _ = await check_store(network)
        done = max(record.version for record in after) > max(record.version for record in records)
        assert trail == before + (events if done else [])
        if isinstance(result, Saved):
            assert done
            assert result.record in after
        else:
            assert isinstance(result, Unavailable)
            assert not done or fault in RUNS
        if not network.proxy.hit.is_set():
            break
    assert hits >= 2
    assert not network.proxy.hit.is_set()


@pytest.mark.parametrize("fault", LATE, ids=lambda fault: fault.name.lower())
async def test_late_decision_names_the_first_reviewer(network: Network, fault: Fault) -> None:
    record = await suspend_run(network)
    approval = DecisionRequest(action="approve", digest=record.items[0].digest)
    network.proxy.arm(fault, 2)
    deciding = asyncio.ensure_future(read_result(network.faulty.decide(record.id, "i1", approval, person("ada"), "k")))
    await (network.proxy.ran if fault in RUNS else network.proxy.hit).wait()
    denial = DecisionRequest(action="deny", digest=record.items[0].digest)
    rival = await read_result(network.direct.decide(record.id, "i1", denial, person("bob"), "k"))
    network.proxy.go_on.set()
    first, second = (rival, await deciding) if fault is Fault.SLOW_COMMAND else (await deciding, rival)
    assert isinstance(first, Saved)
    assert isinstance(second, AlreadyDecided)
    assert second.facts["decided_by"] == ("bob" if fault is Fault.SLOW_COMMAND else "ada")
    _, trail, ready = await check_store(network)
    assert (trail, ready) == (["run_paused", "decision_recorded", "decided"], 1)


async def lose_reply_and_commit(
    network: Network, call: Call, rival: Callable[[], Awaitable[Any]]
) -> Saved | SaysoError:
    """Lose the reply to a commit, and commit another step before the caller reads again."""
    network.proxy.arm(Fault.CUT_AFTER, 2)
    task = asyncio.ensure_future(read_result(call(network.faulty)))
    await network.proxy.hit.wait()
    network.proxy.arm(Fault.SLOW_COMMAND, 1)
    await network.proxy.hit.wait()
    await rival()
    network.proxy.go_on.set()
    return await task


async def test_decision_with_lost_reply_is_repeated_after_lease(network: Network) -> None:
    call = await prepare_approve(network)
    (record,), _, _ = await check_store(network)
    result = await lose_reply_and_commit(network, call, lambda: network.direct.lease(record.id, "w1", LEASE_MS))
    assert isinstance(result, Saved)
    assert result.repeated
    _, trail, _ = await check_store(network)
    assert trail == ["run_paused", "decision_recorded", "decided", "run_resuming"]


async def test_settle_is_repeated_after_other_reads(network: Network) -> None:
    call = await prepare_settle(network)
    (record,), _, _ = await check_store(network)
    result = await lose_reply_and_commit(network, call, lambda: network.direct.tick(record.id))
    assert isinstance(result, Saved)
    _, trail, _ = await check_store(network)
    assert trail == ["run_started", "run_resuming", "run_completed"]


async def test_redeem_once_after_lost_reply_and_renewed_lease(network: Network) -> None:
    call = await prepare_redeem(network)
    (record,), _, _ = await check_store(network)
    fence = Fence("w1", 1, LEASE_MS)
    result = await lose_reply_and_commit(network, call, lambda: network.direct.renew(record.id, fence))
    assert isinstance(result, Saved | Conflict)
    _, trail, _ = await check_store(network)
    assert trail.count("permit_redeemed") == 1


async def test_lost_ready_entry_is_queued_again(network: Network) -> None:
    record = await start_run(network)
    schedule = Schedule(TenantStore(network.connections[1], network.tenant, HOOKS))
    assert [one.id for one in await schedule.take(1)] == [record.id], (
        "the entry left the ready list and no worker leased it"
    )
    assert await schedule.due(await schedule.now_ms()) == []
    assert record.due_at_ms is not None
    assert await schedule.due(record.due_at_ms) == [record.id]


def test_runs_lists_the_faults_after_the_command() -> None:
    assert {fault for fault in Fault if "reply" in fault or "after" in fault} == set(RUNS)
