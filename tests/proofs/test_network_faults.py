"""Every step has one effect, whatever fails between a process and its store, at any command.

Every step goes through a proxy that fails each of its commands in turn, in each way. A caller that gets `Unavailable`
repeats its request.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso.errors import AlreadyDecided, Conflict, SaysoError, Unavailable
from sayso.policy.engine import Action, Policy
from sayso.records.decisions import DecisionRequest
from sayso.records.events import find_break
from sayso.records.items import ItemKind
from sayso.records.run_state import seal_state
from sayso.records.suspensions import Intent, RunEnd, RunRef, RunStatus, SuspensionRecord
from sayso.transitions.deciding import suspend
from sayso.transitions.execution import Fence
from service.desk.desk import Desk
from service.desk.drafts import draft_suspension
from service.store.connection.connecting import connect
from service.store.keys import TenantKeys
from service.store.runs.runs import Runs
from service.store.suspensions.commits import Idempotency
from service.store.suspensions.saving import Saved, Suspensions
from service.store.suspensions.schedule import Schedule
from service.store.tenants import Connections, TenantStore
from tests.proofs.indexes import expect_indexes, read_indexes
from tests.proofs.proxies import RUNS, Fault, Proxy, running_proxy
from tests.sayso.samples import ask, person

STATE = seal_state(b"{}")
LEASE_MS = 30_000
END = RunEnd(status=RunStatus.COMPLETED)
LATE = (Fault.SLOW_COMMAND, Fault.SLOW_REPLY)
MOST_COMMANDS = 8
tenants = count()


@dataclass
class Net:
    """A desk behind the proxy, and one without it."""

    proxy: Proxy
    redis: Redis
    connections: tuple[Connections, Connections]
    tenant: str = ""
    shaky: Desk = field(init=False)
    steady: Desk = field(init=False)

    def bind(self) -> None:
        """Start a new tenant."""
        self.tenant = f"t{next(tenants)}"
        self.shaky, self.steady = (build_desk(TenantStore(one, self.tenant)) for one in self.connections)


def build_desk(store: TenantStore) -> Desk:
    return Desk(Suspensions(store), Runs(store), lambda: Policy(default=Action.ALLOW))


@pytest.fixture
async def net(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Net]:
    redis = connect(clean_store_url)
    async with running_proxy(clean_store_url, tmp_path) as (proxy, url):
        through = connect(url)
        net = Net(proxy, redis, (Connections(through), Connections(redis)))
        await begin(net)  # so that the server knows the scripts
        yield net
        await through.aclose()
    await redis.aclose()


# What is done, from a fresh run each time: what it takes first, then the step itself

Call = Callable[[Desk], Awaitable[Saved]]


def ref() -> RunRef:
    return RunRef(id="run_1", agent="a", owner="bot", thread_id="t")


async def begin(net: Net) -> SuspensionRecord:
    net.bind()
    return (await net.steady.start(ref(), STATE)).record


async def pend(net: Net, kind: ItemKind = ItemKind.APPROVAL) -> SuspensionRecord:
    net.bind()
    draft = draft_suspension(net.tenant, ref(), state=None)
    begun = ask(kind=kind)
    return (await net.steady.suspensions.create(draft.id, lambda now: suspend(draft, (begun,), now))).record


async def lease(net: Net, record: SuspensionRecord) -> Fence:
    await net.steady.lease(record.id, "w1", LEASE_MS)
    return Fence("w1", 1, LEASE_MS)


async def starting(net: Net) -> Call:
    net.bind()
    return lambda desk: desk.start(ref(), STATE, key="k", request="the same")


async def suspending(net: Net) -> Call:
    net.bind()
    asked = ask()

    def call(desk: Desk) -> Awaitable[Saved]:
        draft = draft_suspension(net.tenant, ref(), state=None)
        seen = Idempotency("bot", "k", "the same", draft.id)
        return desk.suspensions.create(draft.id, lambda now: suspend(draft, (asked,), now), seen)

    return call


async def approving(net: Net) -> Call:
    record = await pend(net)
    yes = DecisionRequest(action="approve", digest=record.items[0].digest)
    return lambda desk: desk.decide(record.id, "i1", yes, person("ada"), "k")


async def giving(net: Net) -> Call:
    record = await pend(net, ItemKind.INPUT)
    value = DecisionRequest(action="value", value=7, digest=record.items[0].digest)
    return lambda desk: desk.decide(record.id, "i1", value, person("ada"), "k")


async def cancelling(net: Net) -> Call:
    await begin(net)
    return lambda desk: desk.cancel("run_1", person("bot"), "enough", "k")


async def leasing(net: Net) -> Call:
    record = await begin(net)
    return lambda desk: desk.lease(record.id, "w1", LEASE_MS)


async def settling(net: Net) -> Call:
    record = await begin(net)
    fence = await lease(net, record)
    return lambda desk: desk.settle(record.id, fence, END, ())


async def redeeming(net: Net) -> Call:
    record = await pend(net)
    yes = DecisionRequest(action="approve", digest=record.items[0].digest)
    await net.steady.decide(record.id, "i1", yes, person("ada"))
    fence = await lease(net, record)
    intent = Intent(
        item_id="i1",
        call_id="call_0",
        index=0,
        tool="refund",
        idempotency_key=f"{record.id}:i1",
        idempotent=False,
        attempt=1,
        holder="w1",
        begun_at_ms=0,
    )
    return lambda desk: desk.redeem(record.id, fence, (intent,), (), None)


async def checkpointing(net: Net) -> Call:
    record = await begin(net)
    fence = await lease(net, record)
    return lambda desk: desk.checkpoint(record.id, fence, STATE, ())


async def suspending_again(net: Net) -> Call:
    record = await begin(net)
    fence = await lease(net, record)
    return lambda desk: desk.suspend_again(record, fence, (ask(),), STATE, (), 1)


async def postponing(net: Net) -> Call:
    record = await begin(net)
    fence = await lease(net, record)
    return lambda desk: desk.postpone(record.id, fence, "no such agent")


async def releasing(net: Net) -> Call:
    record = await begin(net)
    fence = await lease(net, record)
    return lambda desk: desk.release(record.id, fence, "stopping")


REPEATED: dict[str, tuple[Callable[[Net], Awaitable[Call]], list[str], int]] = {
    "start": (starting, ["run_started"], 1),
    "suspend": (suspending, ["run_paused"], 0),
    "approve": (approving, ["run_paused", "decision_recorded", "decided"], 1),
    "give a value": (giving, ["run_paused", "decision_recorded", "decided"], 1),
    "cancel": (cancelling, ["run_started", "run_cancelled"], 1),
    "lease": (leasing, ["run_started", "run_resuming"], 1),
    "settle": (settling, ["run_started", "run_resuming", "run_completed"], 1),
}
"""Steps that are repeated until they succeed: the setup, its trail, and how often its run is made ready."""

GIVEN_UP: dict[str, tuple[Callable[[Net], Awaitable[Call]], list[str]]] = {
    "redeem": (redeeming, ["run_resumed", "permit_redeemed"]),
    "checkpoint": (checkpointing, []),
    "suspend again": (suspending_again, ["run_paused"]),
    "postpone": (postponing, ["run_postponed"]),
    "release": (releasing, ["run_released"]),
}
"""A worker's steps: without a reply it leaves the run to the next attempt."""


async def outcome(coroutine: Awaitable[Saved]) -> Saved | SaysoError:
    try:
        return await coroutine
    except SaysoError as error:
        return error


async def ask_again(net: Net, call: Call) -> Saved:
    """Repeat a step until it succeeds: on a busy machine the client's short timeout may pass once more."""
    result = await outcome(call(net.shaky))
    for _ in range(9):
        if isinstance(result, Unavailable):
            result = await outcome(call(net.shaky))
    assert isinstance(result, Saved), result
    return result


async def take_place(net: Net, fault: Fault, place: int, call: Call) -> Saved | SaysoError:
    """Take a step while its `place`-th script fails; a late reply arrives right after it."""
    net.proxy.arm(fault, place)
    task = asyncio.ensure_future(outcome(call(net.shaky)))
    if fault in LATE:
        hit = asyncio.ensure_future(net.proxy.hit.wait())
        await asyncio.wait([hit, task], return_when=asyncio.FIRST_COMPLETED)
        hit.cancel()
        net.proxy.go_on.set()
    told = await task
    net.proxy.disarm()
    return told


async def check_store(net: Net) -> tuple[list[SuspensionRecord], list[str], int]:
    """Check that record, indexes and trail agree; return the records, the trail's kinds, and the ready list."""
    held, records = await read_indexes(net.redis, net.tenant)
    assert {name: held[name] for name in held if held[name]} == expect_indexes(records)
    trail = await Runs(TenantStore(net.connections[1], net.tenant)).trail("run_1")
    assert find_break(trail) is None
    ready = await net.redis.llen(TenantKeys(net.tenant).ready)
    return records, [entry.type for entry in trail], ready


@pytest.mark.parametrize("step", REPEATED)
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
async def test_a_request_repeated_after_any_fault_has_one_effect(net: Net, step: str, fault: Fault) -> None:
    prepare, trail, ready = REPEATED[step]
    hits = 0
    for place in range(1, MOST_COMMANDS):
        call = await prepare(net)
        first = await take_place(net, fault, place, call)
        hits += net.proxy.hit.is_set()
        assert isinstance(first, Saved | Unavailable)
        second = await ask_again(net, call)
        third = await call(net.steady)
        assert second.repeated or isinstance(first, Unavailable)
        assert third.repeated
        assert second.record == third.record
        assert isinstance(first, Unavailable) or first.record == third.record
        records, told, put_before = await check_store(net)
        assert (records, told, put_before) == ([third.record], trail, ready)
        if not net.proxy.hit.is_set():
            break
    assert hits >= 1, "at least the commit went wrong once"
    assert not net.proxy.hit.is_set(), "every command of the step went wrong once"


@pytest.mark.parametrize("step", GIVEN_UP)
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
async def test_a_workers_step_is_saved_whole_or_not_at_all(net: Net, step: str, fault: Fault) -> None:
    prepare, tells = GIVEN_UP[step]
    hits = 0
    for place in range(1, MOST_COMMANDS):
        call = await prepare(net)
        records, before, _ = await check_store(net)
        told = await take_place(net, fault, place, call)
        hits += net.proxy.hit.is_set()
        after, trail, _ = await check_store(net)
        done = max(record.version for record in after) > max(record.version for record in records)
        assert trail == before + (tells if done else [])
        if isinstance(told, Saved):
            assert done
            assert told.record in after
        else:
            assert isinstance(told, Unavailable)
            assert not done or fault in RUNS
        if not net.proxy.hit.is_set():
            break
    assert hits >= 2
    assert not net.proxy.hit.is_set()


@pytest.mark.parametrize("fault", LATE, ids=lambda fault: fault.name.lower())
async def test_late_decision_names_the_first_reviewer(net: Net, fault: Fault) -> None:
    record = await pend(net)
    yes = DecisionRequest(action="approve", digest=record.items[0].digest)
    net.proxy.arm(fault, 2)
    deciding = asyncio.ensure_future(outcome(net.shaky.decide(record.id, "i1", yes, person("ada"), "k")))
    await (net.proxy.ran if fault in RUNS else net.proxy.hit).wait()
    no = DecisionRequest(action="deny", digest=record.items[0].digest)
    rival = await outcome(net.steady.decide(record.id, "i1", no, person("bob"), "k"))
    net.proxy.go_on.set()
    first, second = (rival, await deciding) if fault is Fault.SLOW_COMMAND else (await deciding, rival)
    assert isinstance(first, Saved)
    assert isinstance(second, AlreadyDecided)
    assert second.facts["decided_by"] == ("bob" if fault is Fault.SLOW_COMMAND else "ada")
    _, trail, ready = await check_store(net)
    assert (trail, ready) == (["run_paused", "decision_recorded", "decided"], 1)


async def lose_reply_to_a_rival(net: Net, call: Call, rival: Callable[[], Awaitable[Any]]) -> Saved | SaysoError:
    """Lose the reply to a commit, and commit for somebody else before the caller reads again."""
    net.proxy.arm(Fault.CUT_AFTER, 2)
    task = asyncio.ensure_future(outcome(call(net.shaky)))
    await net.proxy.hit.wait()
    net.proxy.arm(Fault.SLOW_COMMAND, 1)
    await net.proxy.hit.wait()
    await rival()
    net.proxy.go_on.set()
    return await task


async def test_decision_with_lost_reply_is_repeated_after_lease(net: Net) -> None:
    call = await approving(net)
    (record,), _, _ = await check_store(net)
    told = await lose_reply_to_a_rival(net, call, lambda: net.steady.lease(record.id, "w1", LEASE_MS))
    assert isinstance(told, Saved)
    assert told.repeated
    _, trail, _ = await check_store(net)
    assert trail == ["run_paused", "decision_recorded", "decided", "run_resuming"]


async def test_settle_is_repeated_after_other_reads(net: Net) -> None:
    call = await settling(net)
    (record,), _, _ = await check_store(net)
    told = await lose_reply_to_a_rival(net, call, lambda: net.steady.tick(record.id))
    assert isinstance(told, Saved)
    _, trail, _ = await check_store(net)
    assert trail == ["run_started", "run_resuming", "run_completed"]


async def test_redeem_once_after_lost_reply_and_renewed_lease(net: Net) -> None:
    call = await redeeming(net)
    (record,), _, _ = await check_store(net)
    fence = Fence("w1", 1, LEASE_MS)
    told = await lose_reply_to_a_rival(net, call, lambda: net.steady.renew(record.id, fence))
    assert isinstance(told, Saved | Conflict)
    _, trail, _ = await check_store(net)
    assert trail.count("permit_redeemed") == 1


async def test_lost_ready_entry_is_queued_again(net: Net) -> None:
    record = await begin(net)
    schedule = Schedule(TenantStore(net.connections[1], net.tenant))
    assert [one.id for one in await schedule.take(1)] == [record.id], (
        "the server has handed it out, and its worker never had it"
    )
    assert await schedule.due(await schedule.now_ms()) == []
    assert record.due_at_ms is not None
    assert await schedule.due(record.due_at_ms) == [record.id]


def test_the_proxy_knows_after_which_faults_the_command_has_run() -> None:
    assert {fault for fault in Fault if "reply" in fault or "after" in fault} == set(RUNS)
