"""Steps of the desk through a faulty connection: their setups, their trails, and how to take them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from redis.asyncio import Redis

from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.chain import find_break
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import ItemKind
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import RunEnd, RunRef, RunStatus, SuspensionRecord
from sayso.core.transitions.deciding import suspend
from sayso.core.transitions.execution import Fence
from sayso.errors import SaysoError, Unavailable
from service.core.desk.changes import draft_suspension
from service.core.desk.desk import Desk
from service.core.store.keys import TenantKeys
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.commits import Idempotency
from service.core.store.suspensions.saving import Saved, Suspensions
from service.core.store.tenants import Connections, TenantStore
from service.features.registry import HOOKS
from tests.proofs.indexes import expect_indexes, read_indexes
from tests.proofs.proxies import Fault, Proxy
from tests.sayso.samples import ask, intent, person

STATE = seal_state(b"{}")
LEASE_MS = 30_000
END = RunEnd(status=RunStatus.COMPLETED)
LATE = (Fault.SLOW_COMMAND, Fault.SLOW_REPLY)
MAX_COMMANDS = 8
tenants = count()


@dataclass
class Network:
    """A desk behind the proxy, and one without it."""

    proxy: Proxy
    redis: Redis
    connections: tuple[Connections, Connections]
    tenant: str = ""
    faulty: Desk = field(init=False)
    direct: Desk = field(init=False)

    def bind(self) -> None:
        """Start a new tenant."""
        self.tenant = f"t{next(tenants)}"
        self.faulty, self.direct = (
            build_desk(TenantStore(connections, self.tenant, HOOKS)) for connections in self.connections
        )


def build_desk(store: TenantStore) -> Desk:
    return Desk(Suspensions(store), Runs(store), lambda: Policy(default=Action.ALLOW))


Call = Callable[[Desk], Awaitable[Saved]]


def ref() -> RunRef:
    return RunRef(id="run_1", agent="a", owner="bot", thread_id="t")


async def start_run(network: Network) -> SuspensionRecord:
    network.bind()
    return (await network.direct.start(ref(), STATE)).record


async def suspend_run(network: Network, kind: ItemKind = ItemKind.APPROVAL) -> SuspensionRecord:
    network.bind()
    draft = draft_suspension(network.tenant, ref(), state=None)
    draft_item = ask(kind=kind)
    return (await network.direct.suspensions.create(draft.id, lambda now: suspend(draft, (draft_item,), now))).record


async def lease(network: Network, record: SuspensionRecord) -> Fence:
    await network.direct.lease(record.id, "w1", LEASE_MS)
    return Fence("w1", 1, LEASE_MS)


async def prepare_start(network: Network) -> Call:
    network.bind()
    return lambda desk: desk.start(ref(), STATE, key="k", request="the same")


async def prepare_suspend(network: Network) -> Call:
    network.bind()
    draft_item = ask()

    def call(desk: Desk) -> Awaitable[Saved]:
        draft = draft_suspension(network.tenant, ref(), state=None)
        seen = Idempotency("bot", "k", "the same", draft.id)
        return desk.suspensions.create(draft.id, lambda now: suspend(draft, (draft_item,), now), seen)

    return call


async def prepare_approve(network: Network) -> Call:
    record = await suspend_run(network)
    approval = DecisionRequest(action="approve", digest=record.items[0].digest)
    return lambda desk: desk.decide(record.id, "i1", approval, person("ada"), "k")


async def prepare_value(network: Network) -> Call:
    record = await suspend_run(network, ItemKind.INPUT)
    value = DecisionRequest(action="value", value=7, digest=record.items[0].digest)
    return lambda desk: desk.decide(record.id, "i1", value, person("ada"), "k")


async def prepare_cancel(network: Network) -> Call:
    await start_run(network)
    return lambda desk: desk.cancel("run_1", person("bot"), "enough", "k")


async def prepare_lease(network: Network) -> Call:
    record = await start_run(network)
    return lambda desk: desk.lease(record.id, "w1", LEASE_MS)


async def prepare_settle(network: Network) -> Call:
    record = await start_run(network)
    fence = await lease(network, record)
    return lambda desk: desk.settle(record.id, fence, END, ())


async def prepare_redeem(network: Network) -> Call:
    record = await suspend_run(network)
    approval = DecisionRequest(action="approve", digest=record.items[0].digest)
    await network.direct.decide(record.id, "i1", approval, person("ada"))
    fence = await lease(network, record)
    started = intent(idempotency_key=f"{record.id}:i1")
    return lambda desk: desk.redeem(record.id, fence, (started,), (), None)


async def prepare_checkpoint(network: Network) -> Call:
    record = await start_run(network)
    fence = await lease(network, record)
    return lambda desk: desk.checkpoint(record.id, fence, STATE, ())


async def prepare_suspend_again(network: Network) -> Call:
    record = await start_run(network)
    fence = await lease(network, record)
    return lambda desk: desk.suspend_again(record, fence, (ask(),), STATE, (), 1)


async def prepare_postpone(network: Network) -> Call:
    record = await start_run(network)
    fence = await lease(network, record)
    return lambda desk: desk.postpone(record.id, fence, "no such agent")


async def prepare_release(network: Network) -> Call:
    record = await start_run(network)
    fence = await lease(network, record)
    return lambda desk: desk.release(record.id, fence, "stopping")


REPEATED: dict[str, tuple[Callable[[Network], Awaitable[Call]], list[str], int]] = {
    "start": (prepare_start, ["run_started"], 1),
    "suspend": (prepare_suspend, ["run_paused"], 0),
    "approve": (prepare_approve, ["run_paused", "decision_recorded", "decided"], 1),
    "give a value": (prepare_value, ["run_paused", "decision_recorded", "decided"], 1),
    "cancel": (prepare_cancel, ["run_started", "run_cancelled"], 1),
    "lease": (prepare_lease, ["run_started", "run_resuming"], 1),
    "settle": (prepare_settle, ["run_started", "run_resuming", "run_completed"], 1),
}
"""Steps that are repeated until they succeed: the setup, its trail, and how often its run is made ready."""

GIVEN_UP: dict[str, tuple[Callable[[Network], Awaitable[Call]], list[str]]] = {
    "redeem": (prepare_redeem, ["run_resumed", "permit_redeemed"]),
    "checkpoint": (prepare_checkpoint, []),
    "suspend again": (prepare_suspend_again, ["run_paused"]),
    "postpone": (prepare_postpone, ["run_postponed"]),
    "release": (prepare_release, ["run_released"]),
}
"""A worker's steps: without a reply it releases the run to the next attempt."""


async def read_result(coroutine: Awaitable[Saved]) -> Saved | SaysoError:
    try:
        return await coroutine
    except SaysoError as error:
        return error


async def repeat_until_saved(network: Network, call: Call) -> Saved:
    """Repeat a step until it succeeds: on a busy machine the client's short timeout may pass once more."""
    result = await read_result(call(network.faulty))
    for _ in range(9):
        if isinstance(result, Unavailable):
            result = await read_result(call(network.faulty))
    assert isinstance(result, Saved), result
    return result


async def take_step(network: Network, fault: Fault, place: int, call: Call) -> Saved | SaysoError:
    """Take a step while its `place`-th script fails; a late reply arrives right after it."""
    network.proxy.arm(fault, place)
    task = asyncio.ensure_future(read_result(call(network.faulty)))
    if fault in LATE:
        hit = asyncio.ensure_future(network.proxy.hit.wait())
        await asyncio.wait([hit, task], return_when=asyncio.FIRST_COMPLETED)
        hit.cancel()
        network.proxy.go_on.set()
    result = await task
    network.proxy.disarm()
    return result


async def check_store(network: Network) -> tuple[list[SuspensionRecord], list[str], int]:
    """Check that record, indexes and trail agree; return the records, the trail's kinds, and the ready list."""
    held, records = await read_indexes(network.redis, network.tenant)
    assert {name: held[name] for name in held if held[name]} == expect_indexes(records)
    trail = await Runs(TenantStore(network.connections[1], network.tenant, HOOKS)).trail("run_1")
    assert find_break(trail) is None
    ready = await network.redis.llen(TenantKeys(network.tenant).ready)
    return records, [entry.type for entry in trail], ready
