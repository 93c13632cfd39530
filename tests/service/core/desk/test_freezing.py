"""A freeze stops what would start, at every door, and gives the time back when it is lifted."""

import asyncio

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import Status
from sayso.core.records.terms import RuleTerms
from sayso.core.transitions.execution import Fence
from sayso.errors import Frozen, NotFound, Unavailable
from service.assembly import assemble
from service.core.desk.changes import no_freezes
from service.core.desk.desk import Desk
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending, make_running, person
from tests.sayso.samples import intent
from workers.clock.ticks import process_due, wake_unfrozen


async def until_due(wiring: Wiring) -> None:
    for _ in range(100_000):
        if await process_due(wiring):
            return
    raise AssertionError("nothing was ever due")


@pytest.mark.parametrize("scope", ["all", "agent:demo", "tool:refund"])
async def test_frozen_run_is_not_leased_until_unfreeze(wiring: Wiring, scope: str) -> None:
    record = await approve(wiring, await make_pending(wiring))
    assert [one.id for one in await wiring.schedule.take(0.1)] == [record.id]
    freeze = await wiring.freezes.freeze(scope, "odd", person("root"))
    with pytest.raises(Frozen, match="root has frozen"):
        await wiring.desk.lease(record.id, "w1", 30_000)
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    assert await wake_unfrozen(wiring) == 1
    assert await wake_unfrozen(wiring) == 0, "that is done once"
    assert [one.id for one in await wiring.schedule.take(0.1)] == [record.id]
    assert (await wiring.desk.lease(record.id, "w1", 30_000)).record.status is Status.RESUMING


async def test_a_run_under_way_starts_nothing_that_is_frozen(wiring: Wiring) -> None:
    record = await make_running(wiring)
    await wiring.desk.lease(record.id, "w1", 30_000)
    fence = Fence("w1", 1, 30_000)
    freeze = await wiring.freezes.freeze("tool:look_up", "", person("root"))
    with pytest.raises(Frozen) as refused:
        await wiring.desk.redeem(record.id, fence, (intent(None, tool="look_up"),), (), None)
    assert refused.value.facts["tools"] == ["look_up"]
    await wiring.desk.redeem(record.id, fence, (intent(None, tool="refund"),), (), None)
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    await wiring.desk.redeem(record.id, fence, (intent(None, tool="look_up"),), (), None)


async def test_other_process_reads_an_ended_freeze_before_it_refuses(wiring: Wiring) -> None:
    record = await make_running(wiring)
    freeze = await wiring.freezes.freeze("all", "", person("root"))
    async with assemble(wiring.settings) as other:
        with pytest.raises(Frozen):
            await other.desk.lease(record.id, "w1", 30_000)
        await wiring.freezes.unfreeze(freeze.id, person("root"))
        assert (await other.desk.lease(record.id, "w1", 30_000)).record.status is Status.RESUMING


async def test_no_fallback_decides_what_is_frozen_and_its_deadline_moves(wiring: Wiring) -> None:
    freeze = await wiring.freezes.freeze("tool:refund", "", person("root"))
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)))
    await until_due(wiring)
    held = (await wiring.desk.suspensions.read(record.id)).record
    assert held is not None
    assert held.status is Status.PENDING
    assert held.due_at_ms is not None
    assert held.due_at_ms > record.items[0].terms.deadline_at_ms, "it is not due all the time"
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    await wake_unfrozen(wiring)
    shifted = (await wiring.desk.suspensions.read(record.id)).record
    assert shifted is not None
    assert shifted.items[0].terms.deadline_at_ms > record.items[0].terms.deadline_at_ms
    trail = await wiring.runs.trail(record.run.id)
    assert [entry.type for entry in trail] == ["run_paused", "deadlines_moved"]
    ended = shifted
    while ended.status is Status.PENDING:  # on a busy machine a tick may come before its due time
        await until_due(wiring)
        found = (await wiring.desk.suspensions.read(record.id)).record
        assert found is not None
        ended = found
    assert ended.status is Status.DECIDED


async def test_people_go_on_deciding_what_is_frozen_even_after_its_old_deadline(wiring: Wiring) -> None:
    await wiring.freezes.freeze("all", "", person("root"))
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)))
    await until_due(wiring)
    yes = DecisionRequest(action="approve", digest=record.items[0].digest)
    saved = await wiring.desk.decide(record.id, "i1", yes, person("anna"))
    assert saved.record.status is Status.DECIDED
    await until_due(wiring)
    after = (await wiring.desk.suspensions.read(record.id)).record
    assert after is not None
    assert after.receipt.redrives == 0, "nobody is troubled with it"


async def test_scope_is_frozen_once_and_unfrozen_once(wiring: Wiring) -> None:
    first, second = [await wiring.freezes.freeze("all", "", person(name)) for name in ("root", "ruth")]
    assert first == second
    unfrozen, again = [await wiring.freezes.unfreeze(first.id, person(name)) for name in ("root", "ruth")]
    assert unfrozen == again
    assert unfrozen.unfrozen_by == "root"
    with pytest.raises(NotFound):
        await wiring.freezes.unfreeze("frz_0", person("root"))


async def test_racing_leases_and_unfreeze_give_the_run_to_one_worker(wiring: Wiring) -> None:
    record = await make_running(wiring)
    freeze = await wiring.freezes.freeze("all", "", person("root"))
    unfreeze = wiring.freezes.unfreeze(freeze.id, person("root"))
    leases = [wiring.desk.lease(record.id, f"w{place}", 30_000) for place in range(8)]
    await asyncio.gather(unfreeze, *leases, return_exceptions=True)
    found = (await wiring.desk.suspensions.read(record.id)).record
    assert found is not None
    assert (found.lease.attempt if found.lease else 1) == 1


async def test_nothing_starts_by_what_was_known_to_be_frozen_more_than_a_second_ago(wiring: Wiring) -> None:
    record = await make_running(wiring)
    now_ms = await wiring.schedule.now_ms()
    known = await wiring.freezes.known(fresh=True)
    assert now_ms + 1_000 <= wiring.freezes.sure_until_ms() <= await wiring.schedule.now_ms() + 1_000
    async with assemble(wiring.settings.model_copy(update={"tenant": "another"})) as other:
        assert other.freezes.sure_until_ms() == 0

    async def recall(_fresh: bool) -> tuple[Freeze, ...]:
        return known

    desk = wiring.desk
    late = Desk(desk.suspensions, desk.runs, wiring.rulebook.refresh, recall, lambda: now_ms - 1)
    with pytest.raises(Unavailable, match="too long to find out what is frozen"):
        await late.lease(record.id, "w1", 30_000)
    assert (await desk.suspensions.read(record.id)).record == record
    in_time = Desk(desk.suspensions, desk.runs, wiring.rulebook.refresh, recall, lambda: now_ms + 60_000)
    assert (await in_time.lease(record.id, "w1", 30_000)).record.status is Status.RESUMING


async def test_no_fallback_applies_by_what_was_frozen_more_than_a_second_ago(wiring: Wiring) -> None:
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)))
    while not await wiring.schedule.due(await wiring.schedule.now_ms()):
        pass
    desk, now_ms = wiring.desk, await wiring.schedule.now_ms()
    late = Desk(desk.suspensions, desk.runs, wiring.rulebook.refresh, no_freezes, lambda: now_ms - 1)
    with pytest.raises(Unavailable, match="too long to find out what is frozen"):
        await late.tick(record.id)
    assert await late.tick_batch([record.id]) == [record.id]
    assert (await desk.suspensions.read(record.id)).record == record
    in_time = Desk(desk.suspensions, desk.runs, wiring.rulebook.refresh, no_freezes, lambda: now_ms + 60_000)
    assert await in_time.tick_batch([record.id]) == []
    assert (await desk.suspensions.read(record.id)).record.status is Status.DECIDED
