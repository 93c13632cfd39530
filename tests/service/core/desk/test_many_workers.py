"""64 workers of four processes share one budget and one rate, while the store drops their connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from typing import TypeVar

import pytest
from redis import Redis

from sayso.core.policy.external import ExternalCall
from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import IllegalTransition, Unavailable
from service.assembly import assemble
from service.core.wiring import Wiring
from tests.builders import REFUND, person, run_ref

PROCESSES, WORKERS, FIT, RELEASED = 4, 64, 40, 13
POLICY = f"""
version: 1
default: request_approval
rules:
  - {{id: budget, tool: refund, action: allow, budget: {{sum: args.amount, max: {FIT * 7 + 3}, per: 1d}}}}
  - {{id: rate, tool: mail, action: allow, limit: {{count: {FIT}, per: 1d}}}}
"""
TOOLS = ("refund", "mail")
Result = TypeVar("Result")


@pytest.fixture
def rules() -> str:
    return POLICY


@pytest.fixture
async def wirings(wiring: Wiring) -> AsyncIterator[list[Wiring]]:
    async with AsyncExitStack() as opened:
        others = [await opened.enter_async_context(assemble(wiring.settings)) for _ in range(PROCESSES - 1)]
        yield [wiring, *others]


@pytest.fixture
def redis(clean_store_url: str) -> Iterator[Redis]:
    with Redis.from_url(clean_store_url) as client:
        yield client


class Killer:
    """Drops all connections of the store every few steps; which of their commits took effect is then unknown."""

    def __init__(self, redis: Redis) -> None:
        self.kills = 0
        self._redis = redis
        self._steps = 0

    async def step(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the work, again for as long as the store was away, as a worker does that was killed and restarted."""
        while True:
            self._steps += 1
            if self._steps % 25 == 0:
                self.kills += self._redis.client_kill_filter(_type="normal", skipme=True)
            try:
                return await work()
            except Unavailable:
                continue


async def ask(killer: Killer, wirings: list[Wiring], tool: str, part: str) -> list[SuspensionRecord]:
    """Have every worker ask for one call at once; return those that were allowed."""

    async def one(number: int) -> SuspensionRecord:
        wiring, key = wirings[number % PROCESSES], f"{part}-{tool}-{number}"
        definition = REFUND.model_copy(update={"name": tool})
        asked = ExternalCall(ToolCall(call_id="c", index=0, name=tool, args={"order": key, "amount": 7}), definition)
        run = run_ref("demo").model_copy(update={"id": f"run_{key}"})
        return (await killer.step(lambda: wiring.desk.suspend(run, [asked], ResumeSpec(mode="poll"), key=key))).record

    records = await asyncio.gather(*map(one, range(WORKERS)))
    return [record for record in records if record.items[0].outcome is not None]


async def release(killer: Killer, wirings: list[Wiring], records: list[SuspensionRecord]) -> None:
    """Cancel calls that have not started, from all processes at once."""

    async def one(number: int, record: SuspensionRecord) -> None:
        with suppress(IllegalTransition):  # an attempt whose answer was lost has cancelled it
            await killer.step(lambda: wirings[number % PROCESSES].desk.cancel(record.run.id, person("anna")))

    await asyncio.gather(*(one(number, record) for number, record in enumerate(records)))


async def redeem(killer: Killer, wirings: list[Wiring], records: list[SuspensionRecord]) -> None:
    async def one(number: int, record: SuspensionRecord) -> None:
        desk = wirings[number % PROCESSES].desk
        await killer.step(lambda: desk.client_redeem(record.id, "i1", f"w{number}", Revocations()))

    await asyncio.gather(*(one(number, record) for number, record in enumerate(records)))


@pytest.mark.parametrize("tool", TOOLS)
async def test_killed_workers_share_a_limit_exactly(wirings: list[Wiring], redis: Redis, tool: str) -> None:
    """Never over by one, and never short of what was released."""
    killer = Killer(redis)
    allowed = await ask(killer, wirings, tool, "first")
    assert len(allowed) == FIT
    await release(killer, wirings, allowed[:RELEASED])
    again = await ask(killer, wirings, tool, "second")
    assert len(again) == RELEASED
    await redeem(killer, wirings, [*allowed[RELEASED:], *again])
    assert await ask(killer, wirings, tool, "third") == [], "a call that started keeps its share"
    assert killer.kills > PROCESSES
