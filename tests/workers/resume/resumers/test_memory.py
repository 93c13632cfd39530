"""Workers start calls under rules that remember: counted in the commit that starts them, never over a limit."""

from pathlib import Path

from redis.asyncio import Redis

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.judgements import Charge, place_charges
from sayso.core.records.suspensions import ResumeSpec, RunRef, RunStatus
from sayso.core.records.tools import ToolCall
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.sayso.samples import person
from tests.workers.runs import draining, ran, refund, start, trail, until

POLICY = """
version: 1
default: request_approval
rules:
  - {id: look, tool: look_up, action: allow}
  - id: no-more
    priority: 300
    tool: refund
    action: deny
    reason: That is enough.
    over: {budget: {sum: args.amount, max: 20, per: 1d}}
  - {id: small, tool: refund, action: allow, budget: {sum: args.amount, max: 12, per: 1d}}
"""


def write_rules(wiring: Wiring, text: str = POLICY) -> None:
    path = wiring.settings.policy
    assert isinstance(path, Path)
    path.write_text(text)
    wiring.rulebook.refresh()


async def ask(wiring: Wiring, *amounts: float) -> Saved:
    calls = [
        ExternalCall(
            ToolCall(call_id="c", index=n, name="refund", args={"order": "A", "amount": amount}), refund.definition
        )
        for n, amount in enumerate(amounts)
    ]
    run = RunRef(id="run_x", agent="a", owner="bot", thread_id="t")
    return await wiring.desk.suspend(run, calls, ResumeSpec(resumer="calls"))


async def approve(wiring: Wiring, asked: Saved) -> None:
    for item in asked.record.items:
        if item.open:
            request = DecisionRequest(action="approve", digest=item.digest)
            await wiring.desk.decide(asked.record.id, item.item_id, request, person("ada"))


async def read_counters(wiring: Wiring) -> list[int]:
    """Return the total of each counter, smallest first."""
    redis: Redis = wiring.desk.suspensions._redis
    names = [name async for name in redis.scan_iter(TenantKeys("default").counter("*"))]
    return sorted([sum(map(int, await redis.hvals(name))) // 1_000_000 for name in names])


async def test_allowed_and_approved_calls_count_once_each(wiring: Wiring) -> None:
    write_rules(wiring)
    async with draining(wiring):
        asked = await ask(wiring, 7, 6)
        assert [item.open for item in asked.record.items] == [False, True]
        await approve(wiring, asked)
        await until(wiring, RunStatus.COMPLETED)
    assert [amount for _, amount, _ in ran] == [7, 6]
    assert await read_counters(wiring) == [7, 13]
    resumed = [one for one in await trail(wiring) if one == "run_resuming"]
    assert len(resumed) == 1


async def test_approved_call_that_others_were_before_is_denied(wiring: Wiring) -> None:
    write_rules(wiring)
    asked = await ask(wiring, 15)
    await approve(wiring, asked)
    (remembered, _) = asked.record.items[0].remembered
    (rival,) = place_charges([Charge(counter=remembered.counter, per_s=86_400, amount=6_000_000)], asked.now_ms)
    redis: Redis = wiring.desk.suspensions._redis
    await redis.hset(TenantKeys("default").counter(rival.counter), str(rival.slot), str(rival.amount))
    async with draining(wiring):
        ended = await until(wiring, RunStatus.COMPLETED)
    assert ran == []
    assert "That is enough." in str(ended.result)


async def test_cancelled_run_gives_back_what_it_held(wiring: Wiring) -> None:
    write_rules(wiring)
    asked = await ask(wiring, 7, 6)
    assert await read_counters(wiring) == [7, 7]
    await wiring.desk.cancel(asked.record.run.id, person("ada"))
    assert await read_counters(wiring) == [0, 0]


async def test_run_counts_the_calls_it_starts(wiring: Wiring) -> None:
    write_rules(wiring)
    async with draining(wiring):
        await start(wiring)
        await until(wiring, RunStatus.SUSPENDED, RunStatus.COMPLETED)
    assert await read_counters(wiring) == [], "a call that waits for others of its batch has not started"
