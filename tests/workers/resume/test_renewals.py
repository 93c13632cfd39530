"""A lease is renewed while its run is driven, and no longer."""

import asyncio

from sayso.core.transitions.execution import Fence
from service.core.wiring import Wiring
from tests.waits import until
from tests.workers.runs import start
from workers.resume.outages import renewed

FENCE = Fence("w1", 1, 300)  # renewed each 100 ms


async def lease(wiring: Wiring) -> str:
    await start(wiring)
    run = await wiring.runs.read("run_x")
    return (await wiring.desk.lease(run.suspension_id, "w1", 30_000)).record.id


async def read_version(wiring: Wiring, suspension_id: str) -> int:
    return (await wiring.desk.suspensions.read(suspension_id)).record.version


async def test_lease_is_renewed_during_the_block_alone(wiring: Wiring) -> None:
    leased = await lease(wiring)
    before = await read_version(wiring, leased)

    async def is_renewed_twice() -> bool:
        return await read_version(wiring, leased) >= before + 2

    with renewed(wiring.desk, leased, FENCE):
        await until(is_renewed_twice)
    ended = await read_version(wiring, leased)
    await asyncio.sleep(0.25)  # between looks
    assert await read_version(wiring, leased) <= ended + 1  # a renewal may have been under way


async def test_lease_of_another_worker_is_left_alone(wiring: Wiring) -> None:
    leased = await lease(wiring)
    before = await read_version(wiring, leased)
    with renewed(wiring.desk, leased, FENCE._replace(holder="w2")):
        await asyncio.sleep(0.25)  # between looks
    assert await read_version(wiring, leased) == before
