"""The clock knows beforehand what deadlines will bring, and what comes between changes that."""

from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending, person
from workers.clock.ticks import AHEAD_MS, VERY_LATE_MS, Precomputing, Rush, process_due


async def due_in(wiring: Wiring, timeout_s: int) -> SuspensionRecord:
    return await make_pending(wiring, ask(terms=RuleTerms(timeout_s=timeout_s)))


async def find(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    found = (await wiring.desk.suspensions.read(record.id)).record
    assert found is not None
    return found


async def look_ahead(wiring: Wiring) -> tuple[Precomputing, int]:
    precomputing, seen = Precomputing(wiring, Rush(wiring.schedule)), 0
    while count := await precomputing.look_ahead(await wiring.schedule.now_ms()):
        seen += count
    return precomputing, seen


async def await_moment(wiring: Wiring, at_ms: int) -> int:
    while (now_ms := await wiring.schedule.now_ms()) < at_ms:
        continue
    return now_ms


async def test_precomputed_deadline_passes_without_a_tick(wiring: Wiring) -> None:
    records = [await due_in(wiring, 2) for _ in range(120)]
    precomputing, seen = await look_ahead(wiring)
    assert seen == 120, "none twice"
    last_ms = max(record.items[0].terms.deadline_at_ms for record in records)
    now_ms = await await_moment(wiring, last_ms)
    assert precomputing.next_in_s(now_ms) < 1
    assert await precomputing.fulfil(now_ms) == 120
    for record in records:
        outcome = (await find(wiring, record)).items[0].outcome
        assert outcome is not None
        assert outcome.at_ms == record.items[0].terms.deadline_at_ms
    assert await process_due(wiring, now_ms) == 0
    assert await precomputing.fulfil(now_ms) == 0
    assert precomputing.next_in_s(now_ms) > 1


async def test_late_precomputed_deadlines_still_pass(wiring: Wiring) -> None:
    records = [await due_in(wiring, 2) for _ in range(60)]
    precomputing, _ = await look_ahead(wiring)
    last_ms = max(record.items[0].terms.deadline_at_ms for record in records)
    now_ms = await await_moment(wiring, last_ms + VERY_LATE_MS + 1)
    assert await precomputing.fulfil(now_ms) == 60
    for record in records:
        outcome = (await find(wiring, record)).items[0].outcome
        assert outcome is not None
        assert outcome.at_ms == record.items[0].terms.deadline_at_ms
    assert await process_due(wiring, now_ms) == 0


async def test_only_the_next_seconds_are_precomputed(wiring: Wiring) -> None:
    await due_in(wiring, AHEAD_MS // 1000 + 60)
    assert (await look_ahead(wiring))[1] == 0


async def test_decision_in_time_replaces_the_precomputed_change(wiring: Wiring) -> None:
    record = await due_in(wiring, 2)
    precomputing, _ = await look_ahead(wiring)
    decided = await approve(wiring, record)
    await precomputing.fulfil(await await_moment(wiring, record.items[0].terms.deadline_at_ms))
    assert await find(wiring, decided) == decided


async def test_freeze_cancels_precomputed_changes(wiring: Wiring) -> None:
    record = await due_in(wiring, 2)
    precomputing, _ = await look_ahead(wiring)
    await wiring.freezes.freeze("tool:refund", "", person("root"))
    now_ms = await await_moment(wiring, record.items[0].terms.deadline_at_ms)
    assert await precomputing.fulfil(now_ms) == 1
    assert (await find(wiring, record)).status is Status.PENDING
    assert await process_due(wiring) == 1
    held = await find(wiring, record)
    assert held.status is Status.PENDING
    assert held.due_at_ms is not None
    assert held.due_at_ms > now_ms


async def test_precomputed_changes_of_other_freezes_are_dropped(wiring: Wiring) -> None:
    before = await due_in(wiring, 2)
    precomputing, _ = await look_ahead(wiring)
    freeze = await wiring.freezes.freeze("tool:other", "", person("root"))
    after = await due_in(wiring, AHEAD_MS // 1000 + 1)
    now_ms = await await_moment(wiring, before.items[0].terms.deadline_at_ms)
    assert await precomputing.look_ahead(now_ms) == 1
    assert await precomputing.fulfil(now_ms) == 0
    assert await process_due(wiring) == 1
    assert (await find(wiring, before)).status is Status.DECIDED
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    assert (await find(wiring, after)).status is Status.PENDING
