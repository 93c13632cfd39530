"""A store that went back is noticed by each process, and nothing runs a second time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Report
from sayso.core.records.freezes import Freeze, Loss, Revocations
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import AlreadyRedeemed, Frozen, IllegalTransition, InvalidInput, Unavailable
from service.assembly import assemble
from service.core.settings import Settings
from service.core.store.connection.formats import check_format
from service.core.wiring import Wiring
from service.features.operate.diagnostics import diagnose
from service.features.operate.metrics import Readings
from tests.builders import REFUND, approve, person, run_ref
from tests.servers import Address

POLL = ResumeSpec(mode="poll")
DONE = Report(success=True, output="done", at_ms=0)
REFUSED = (Frozen, AlreadyRedeemed)  # the call is in doubt once its process has said that it began
Open = Callable[[str], AbstractAsyncContextManager[Wiring]]


@pytest.fixture
async def open_process(address: Address, tmp_path: Path, rules: str) -> Open:
    """Opens a process whose home has this name."""
    await check_format(address.url)
    policy = tmp_path / "policy.yaml"
    policy.write_text(rules)
    return lambda name: assemble(Settings(home=tmp_path / name, redis_url=address.url, policy=policy))


@pytest.fixture
async def wiring(open_process: Open) -> AsyncIterator[Wiring]:
    async with open_process("service") as wiring:
        yield wiring


async def put(wiring: Wiring) -> SuspensionRecord:
    """An approved call that its client runs."""
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": 1})
    record = (await wiring.desk.suspend(run_ref(), [ExternalCall(call, REFUND)], POLL)).record
    return await approve(wiring, record)


async def redeem(wiring: Wiring, record: SuspensionRecord, key: str = "k") -> SuspensionRecord:
    """Redeem the call, as a client that tries again while the store is unavailable."""
    for _ in range(1_000):
        try:
            return (await wiring.desk.client_redeem(record.id, "i1", key, Revocations())).record
        except Unavailable:
            await wiring.store.counts.compare()
    raise AssertionError("the store never settled")


async def find_lost(wiring: Wiring) -> list[Freeze]:
    return [freeze for freeze in await wiring.freezes.in_force(fresh=True) if freeze.lost is not None]


async def lose_redeem(wiring: Wiring, address: Address) -> SuspensionRecord:
    """Redeem a permit that the next primary lacks, and that it refuses to a second client; return its suspension."""
    record = await put(wiring)
    address.add_replica()
    address.part_replica()
    await redeem(wiring, record)
    address.fail_over()
    with pytest.raises(REFUSED):
        await redeem(wiring, record, "another")
    return record


async def test_a_second_redeem_after_a_lagging_replica_took_over_is_refused(wiring: Wiring, address: Address) -> None:
    await lose_redeem(wiring, address)
    (freeze,) = await find_lost(wiring)
    assert (freeze.scope, freeze.by) == ("all", "desk")
    assert freeze.lost is not None
    assert freeze.lost.commits == 1
    acts = (await wiring.activity.read_page(0, 10)).entries
    assert [entry.target for entry in acts if entry.act == "store_went_back"] == [freeze.id]


async def test_a_process_starts_nothing_until_others_compared_their_commits(
    wiring: Wiring, open_process: Open, address: Address
) -> None:
    async with open_process("other") as other:
        record = await put(wiring)
        await other.store.counts.compare()
        await wiring.store.counts.compare()
        address.add_replica()
        address.part_replica()
        await redeem(wiring, record)
        address.fail_over()
        with pytest.raises((Unavailable, *REFUSED)):
            await other.desk.client_redeem(record.id, "i1", "another", Revocations())
        with pytest.raises(REFUSED):
            await redeem(other, record, "another")
        assert len(await find_lost(other)) == 1


async def test_all_processes_notice_an_old_copy_when_they_start_again(open_process: Open, address: Address) -> None:
    async with open_process("worker") as wiring:
        record = await put(wiring)
        copy = address.copy()
        await redeem(wiring, record)
    address.restore(copy)
    async with open_process("worker") as wiring:
        with pytest.raises(REFUSED):
            await redeem(wiring, record, "another")
        assert len(await find_lost(wiring)) == 1


async def test_memory_stays_small_however_often_processes_start(open_process: Open, tmp_path: Path) -> None:
    """Comparisons that begin together each recall what the home remembers."""
    for _ in range(6):
        async with open_process("worker") as wiring, open_process("worker") as other:
            await asyncio.gather(*(one.store.counts.compare() for one in (wiring, other) * 3))
    memories = [path.read_bytes() for path in (tmp_path / "worker" / "commits").glob("*.[0-9]")]
    assert len(memories) == 2
    assert all(len(memory) < 4_000 for memory in memories)


async def test_a_call_of_the_lost_window_is_in_doubt_and_asks_a_person(wiring: Wiring, address: Address) -> None:
    record = await lose_redeem(wiring, address)
    await wiring.recovery.finish()
    (freeze,) = await find_lost(wiring)
    await wiring.freezes.unfreeze(freeze.id, person("root"), checked="The bank shows a refund.")
    with pytest.raises(AlreadyRedeemed):
        await redeem(wiring, record, "another")
    ended = (await wiring.desk.suspensions.read(record.id)).record
    assert ended.following_id is not None
    asked = (await wiring.desk.suspensions.read(ended.following_id)).record
    assert asked.items[0].doubt is not None


async def test_a_client_reports_a_call_that_the_store_has_as_unspent(wiring: Wiring, address: Address) -> None:
    record = await put(wiring)
    with pytest.raises(IllegalTransition, match="not redeemed"):
        await wiring.desk.conclude(record.id, "i1", "k", DONE)
    loss = Loss(commits=1, from_ms=0, to_ms=await wiring.schedule.now_ms())
    await wiring.freezes.note_loss(loss)
    ended = (await wiring.desk.conclude(record.id, "i1", "k", DONE)).record
    assert ended.items[0].permit is not None
    assert ended.items[0].permit.report is not None
    with pytest.raises(REFUSED):
        await redeem(wiring, record, "another")


async def test_a_run_whose_decision_is_lost_too_is_cancelled(wiring: Wiring, address: Address) -> None:
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": 1})
    record = (await wiring.desk.suspend(run_ref(), [ExternalCall(call, REFUND)], POLL)).record
    address.add_replica()
    address.part_replica()
    await redeem(wiring, await approve(wiring, record))
    address.fail_over()
    with suppress(Unavailable):  # it finds out that its connection is gone
        await wiring.store.counts.compare()
    await wiring.store.counts.compare()
    await wiring.recovery.finish()
    assert (await wiring.desk.suspensions.read(record.id)).record.status == "cancelled"


async def test_a_complete_replica_takes_over_without_a_freeze(wiring: Wiring, address: Address) -> None:
    record = await put(wiring)
    address.add_replica()
    await put(wiring)
    address.await_replica()
    address.fail_over()
    assert (await redeem(wiring, record)).items[0].permit is not None
    assert await find_lost(wiring) == []


async def test_a_commit_of_a_process_needs_its_earlier_ones(wiring: Wiring, address: Address) -> None:
    """The server was replaced behind an open connection."""
    record = await put(wiring)
    address.primary.hincrby(wiring.store.keys.commits, wiring.store.counts.process, -1)
    with pytest.raises(Frozen, match="The store went back: 1 commit"):
        await redeem(wiring, record)
    assert len(await find_lost(wiring)) == 1


async def test_an_emptied_store_that_is_set_up_again_is_another_store(wiring: Wiring, address: Address) -> None:
    await put(wiring)
    address.primary.flushall()
    await wiring.store.counts.compare()
    await check_format(address.url)
    await redeem(wiring, await put(wiring))
    assert await find_lost(wiring) == []


async def test_unfreeze_after_a_loss_says_what_was_checked(wiring: Wiring, address: Address) -> None:
    record = await put(wiring)
    address.primary.hincrby(wiring.store.keys.commits, wiring.store.counts.process, -1)
    with pytest.raises(Frozen):
        await redeem(wiring, record)
    (freeze,) = await find_lost(wiring)
    with pytest.raises(InvalidInput, match="say in `checked`"):
        await wiring.freezes.unfreeze(freeze.id, person("root"))
    await wiring.freezes.unfreeze(freeze.id, person("root"), checked="The bank shows no refund.")
    assert (await redeem(wiring, record)).items[0].permit is not None


async def test_a_process_without_a_home_keeps_its_counts_in_memory(
    open_process: Open, address: Address, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    async with open_process("file/home") as wiring:
        record = await put(wiring)
        copy = address.copy()
        await redeem(wiring, record)
        address.restore(copy)
        with pytest.raises(REFUSED):
            await redeem(wiring, record, "another")


async def test_doctor_counts_processes_that_cannot_write_their_home(
    open_process: Open, wiring: Wiring, tmp_path: Path
) -> None:
    async def check() -> tuple[bool, str]:
        (finding,) = [finding async for finding in diagnose(wiring) if finding.part == "homes"]
        return finding.ok, finding.message

    (tmp_path / "file").touch()
    async with open_process("file/home"):
        ok, message = await check()
        assert not ok
        assert "cannot write their home: 1" in message
        assert (await Readings(wiring, ()).find()).forgetful == 1
    assert await check() == (True, "Every process remembers its commits on disk.")


async def test_process_ends_while_the_store_is_away(open_process: Open, address: Address) -> None:
    async with open_process("worker") as wiring:
        await lose_redeem(wiring, address)
        await wiring.recovery.finish()
        (freeze,) = await find_lost(wiring)
        assert freeze.lost is not None
        address.stop()
        wiring.recovery.begin(freeze.lost)
    with pytest.raises(Unavailable):
        await wiring.store.counts.compare()
