"""What is decided waits for a worker once, for as long as none is there, and comes back when one lost it."""

import asyncio

from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from service.core.jobs import DrainQueue
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending
from tests.waits import PATIENCE_S, until
from workers.clock.running import run_clock
from workers.clock.ticks import process_due


async def decide_some(wiring: Wiring, count: int = 3) -> list[str]:
    return [(await approve(wiring, await make_pending(wiring))).id for _ in range(count)]


async def make_due(wiring: Wiring, suspension_id: str) -> None:
    """Have its next look be now, though it was decided only just."""

    def hurry(record: SuspensionRecord, now_ms: int) -> Change:
        return Change(record.model_copy(update={"due_at_ms": now_ms, "updated_at_ms": now_ms}))

    await wiring.desk.suspensions.change(suspension_id, hurry)


async def take_all(wiring: Wiring) -> list[str]:
    return [one.id for one in await wiring.schedule.take(0.01, 100)]


async def test_run_is_queued_once_despite_many_ticks(wiring: Wiring) -> None:
    ids = await decide_some(wiring)
    for _ in range(3):
        for one in ids:
            await make_due(wiring, one)
        assert await process_due(wiring) == 3
        assert await process_due(wiring) == 0
    assert await take_all(wiring) == ids


async def test_lost_run_is_requeued_behind_others(wiring: Wiring) -> None:
    lost, *others = await decide_some(wiring)
    assert [one.id for one in await wiring.schedule.take(0.01)] == [lost]
    for one in (lost, *others):
        await make_due(wiring, one)
    await process_due(wiring)
    assert await take_all(wiring) == [*others, lost]


async def test_lost_run_is_requeued_on_an_empty_list(wiring: Wiring) -> None:
    ids = await decide_some(wiring)
    assert await take_all(wiring) == ids
    for one in ids:
        await make_due(wiring, one)
    await process_due(wiring)
    assert sorted(await take_all(wiring)) == sorted(ids)


async def test_queue_that_never_answers_delays_no_deadline(wiring: Wiring) -> None:
    """Its connection is half-open: it is accepted, and then nothing comes."""
    asked, stopping = asyncio.Event(), asyncio.Event()
    silent: list[asyncio.StreamWriter] = []

    async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silent.append(writer)
        await reader.read(1)
        asked.set()
        await reader.read()

    async with await asyncio.start_server(be_silent, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        queue = DrainQueue(f"redis://{host}:{port}/0", 30)
        clock = asyncio.create_task(run_clock(wiring.settings, stopping, queue))
        await asyncio.wait_for(asked.wait(), PATIENCE_S)
        late = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)), late_ms=5_000)

        async def is_decided() -> bool:
            found = await wiring.desk.suspensions.read(late.id)
            return found.record.status is not Status.PENDING

        await until(is_decided)
        stopping.set()
        for one in silent:
            one.close()
        await clock
        queue.close()
