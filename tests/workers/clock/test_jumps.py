"""The store's clock jumps, and nothing that was asked before expires by it until it is known whether it is right."""

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.freezes import TIME, ClockReading, Freeze
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.errors import ClockInDoubt, Conflict, DeadlinePassed
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending, person, with_deadline
from workers.clock.running import JumpDetector
from workers.clock.ticks import process_due, wake_unfrozen

HOUR = 3_600_000


async def reading(wiring: Wiring, *, ago_ms: int = 0, uptime_ms: int = 0, boot: str = "one") -> ClockReading:
    """A beat as it was `ago_ms` ago on the store's clock."""
    at_ms = await wiring.schedule.now_ms() - ago_ms
    return ClockReading(at_ms=at_ms, uptime_ms=uptime_ms, boot=boot, wall_ms=at_ms)


async def jump(wiring: Wiring, by_ms: int = HOUR) -> JumpDetector:
    """Have the store's clock stand where it stands now, one second of uptime after it said `by_ms` less."""
    beats = JumpDetector(wiring)
    await beats.note(await reading(wiring, ago_ms=by_ms))
    await beats.note(await reading(wiring, uptime_ms=1000))
    return beats


async def age(wiring: Wiring, record: SuspensionRecord, by_ms: int) -> SuspensionRecord:
    """Have a suspension been asked `by_ms` earlier than it was."""

    def earlier(found: SuspensionRecord) -> SuspensionRecord:
        (asked,) = found.items
        item = with_deadline(found, asked, asked.terms.deadline_at_ms - by_ms)
        update = {"created_at_ms": found.created_at_ms - by_ms, "updated_at_ms": found.updated_at_ms - by_ms}
        return found.model_copy(update={**update, "items": (item,), "due_at_ms": item.terms.deadline_at_ms})

    saved = await wiring.desk.suspensions.change(record.id, lambda found, _now_ms: Change(earlier(found)))
    return saved.record


async def asked_before(wiring: Wiring, timeout_s: int = 60) -> SuspensionRecord:
    """A suspension asked right before the jump of an hour, whose deadline the clock went past."""
    return await age(wiring, await make_pending(wiring, ask(terms=RuleTerms(timeout_s=timeout_s))), HOUR)


async def find(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    found = (await wiring.desk.suspensions.read(record.id)).record
    assert found is not None
    return found


async def frozen(wiring: Wiring) -> list[Freeze]:
    return [one for one in await wiring.freezes.in_force(fresh=True) if one.scope == TIME]


def yes(record: SuspensionRecord) -> DecisionRequest:
    return DecisionRequest(action="approve", digest=record.items[0].digest)


async def test_jump_holds_items_that_it_would_expire(wiring: Wiring) -> None:
    record = await asked_before(wiring)
    await jump(wiring)
    (freeze,) = await frozen(wiring)
    assert "jumped from" in freeze.reason
    assert await process_due(wiring) == 1
    held = await find(wiring, record)
    assert held.status is Status.PENDING
    assert held.updated_at_ms == record.updated_at_ms, "its own time stays where it was"
    assert await process_due(wiring) == 0, "it is not due all the time"


async def test_item_that_may_be_late_cannot_be_decided(wiring: Wiring) -> None:
    record = await asked_before(wiring)
    await jump(wiring)
    with pytest.raises(ClockInDoubt, match="Nothing was changed"):
        await wiring.desk.decide(record.id, "i1", yes(record), person("anna"))
    with pytest.raises(ClockInDoubt):
        await wiring.desk.extend(record.id, "i1", record.updated_at_ms + 2 * HOUR, person("anna"))
    assert await find(wiring, record) == record


async def test_item_in_time_by_both_clocks_is_decided(wiring: Wiring) -> None:
    record = await asked_before(wiring, timeout_s=7200)
    await jump(wiring)
    saved = await wiring.desk.decide(record.id, "i1", yes(record), person("anna"))
    assert saved.record.status is Status.DECIDED
    assert (await wiring.desk.lease(record.id, "w1", 30_000)).record.status is Status.RESUMING


async def test_item_created_after_the_jump_expires_as_usual(wiring: Wiring) -> None:
    await jump(wiring)
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)))
    for _ in range(100_000):
        if await process_due(wiring):
            break
    assert (await find(wiring, record)).status is Status.DECIDED


async def test_deadline_before_the_jump_has_passed(wiring: Wiring) -> None:
    record = await age(wiring, await asked_before(wiring), HOUR)
    await jump(wiring)
    with pytest.raises(DeadlinePassed):
        await wiring.desk.decide(record.id, "i1", yes(record), person("anna"))
    assert (await find(wiring, record)).status is Status.DECIDED


async def test_unfreeze_by_an_admin_shifts_deadlines(wiring: Wiring) -> None:
    record = await asked_before(wiring)
    await jump(wiring)
    await process_due(wiring)
    (freeze,) = await frozen(wiring)
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    assert await wake_unfrozen(wiring) == 1
    moved = await find(wiring, record)
    assert moved.items[0].terms.deadline_at_ms >= record.items[0].terms.deadline_at_ms + HOUR - 1000
    assert moved.due_at_ms == moved.items[0].terms.deadline_at_ms
    saved = await wiring.desk.decide(record.id, "i1", yes(moved), person("anna"))
    assert saved.record.status is Status.DECIDED


async def test_unfreeze_by_an_admin_can_keep_deadlines(wiring: Wiring) -> None:
    record = await asked_before(wiring)
    await jump(wiring)
    await process_due(wiring)
    (freeze,) = await frozen(wiring)
    await wiring.freezes.unfreeze(freeze.id, person("root"), "pass")
    await wake_unfrozen(wiring)
    await process_due(wiring)
    assert (await find(wiring, record)).items[0].outcome is not None


async def test_deadlines_of_an_admins_freeze_always_shift(wiring: Wiring) -> None:
    freeze = await wiring.freezes.freeze("all", "", person("root"))
    with pytest.raises(Conflict, match="only after a freeze of time"):
        await wiring.freezes.unfreeze(freeze.id, person("root"), "pass")
    assert await wiring.freezes.in_force() == [freeze]


async def test_clock_that_goes_back_unfreezes_time(wiring: Wiring) -> None:
    """A tick while the clock was an hour ahead leaves the deadline as the next due time."""
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=60)))
    beats = JumpDetector(wiring)
    await beats.note(await reading(wiring))
    ahead = (await reading(wiring, uptime_ms=1000)).at_ms + HOUR
    await beats.note(ClockReading(at_ms=ahead, uptime_ms=1000, boot="one", wall_ms=0))
    (freeze,) = await frozen(wiring)
    await wiring.schedule.defer(record.id, ahead + 5000)
    await beats.note(await reading(wiring, uptime_ms=2000))
    assert await frozen(wiring) == []
    assert await wake_unfrozen(wiring) == 1
    assert (await find(wiring, record)).items == record.items
    assert wiring.freezes.mark_ms() < ahead
    known = await wiring.freezes.known()
    assert [(one.id, one.unfrozen_by, one.deadlines) for one in known] == [(freeze.id, "clock", "pass")]


async def test_hour_without_a_clock_is_no_jump(wiring: Wiring) -> None:
    record = await asked_before(wiring)
    await JumpDetector(wiring).note(await reading(wiring, ago_ms=HOUR))
    with pytest.raises(ClockInDoubt, match="No clock has confirmed the time since"):
        await wiring.desk.decide(record.id, "i1", yes(record), person("anna"))
    await JumpDetector(wiring).note(await reading(wiring, uptime_ms=HOUR))
    assert await frozen(wiring) == []
    await process_due(wiring)
    assert (await find(wiring, record)).items[0].outcome is not None


async def test_jump_while_no_clock_ran_is_detected(wiring: Wiring) -> None:
    await JumpDetector(wiring).note(await reading(wiring, ago_ms=HOUR))
    await JumpDetector(wiring).note(await reading(wiring, uptime_ms=5000))
    assert len(await frozen(wiring)) == 1


async def test_two_clocks_report_one_jump_once(wiring: Wiring) -> None:
    other = JumpDetector(wiring)
    await other.note(await reading(wiring, ago_ms=HOUR))
    await jump(wiring)
    (freeze,) = await frozen(wiring)
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    await other.note(await reading(wiring, uptime_ms=2000))
    assert await frozen(wiring) == []


async def test_second_jump_joins_the_same_freeze(wiring: Wiring) -> None:
    beats = await jump(wiring)
    now = await reading(wiring, uptime_ms=2000)
    await beats.note(now.model_copy(update={"at_ms": now.at_ms + HOUR}))
    (freeze,) = await frozen(wiring)
    assert freeze.jumped_to_ms == now.at_ms + HOUR


async def test_call_that_may_be_too_late_to_start_waits(wiring: Wiring) -> None:
    record = await approve(wiring, await make_pending(wiring, ask(terms=RuleTerms(start_by_s=60))))

    def earlier(found: SuspensionRecord) -> SuspensionRecord:
        outcome = found.items[0].outcome
        assert outcome is not None
        outcome = outcome.model_copy(update={"at_ms": outcome.at_ms - HOUR, "start_by_ms": outcome.start_by_ms - HOUR})
        item = found.items[0].model_copy(update={"outcome": outcome})
        return found.model_copy(update={"items": (item,), "created_at_ms": found.created_at_ms - HOUR})

    await wiring.desk.suspensions.change(record.id, lambda found, _now_ms: Change(earlier(found)))
    await jump(wiring)
    with pytest.raises(ClockInDoubt, match="may still start"):
        await wiring.desk.lease(record.id, "w1", 30_000)
    (freeze,) = await frozen(wiring)
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    await wake_unfrozen(wiring)
    leased = await wiring.desk.lease(record.id, "w1", 30_000)
    assert leased.record.items[0].start_by_ms > leased.now_ms, "it was given its time back"


async def test_worker_can_renew_a_lease_that_the_jump_ended(wiring: Wiring) -> None:
    record = await approve(wiring, await make_pending(wiring))
    leased = (await wiring.desk.lease(record.id, "w1", 30_000)).record
    assert leased.lease is not None
    early = leased.lease.model_copy(update={"until_ms": leased.lease.until_ms - HOUR})
    update = {"lease": early, "updated_at_ms": leased.updated_at_ms - HOUR, "due_at_ms": early.until_ms}
    update["created_at_ms"] = leased.created_at_ms - HOUR
    await wiring.desk.suspensions.change(record.id, lambda found, _now_ms: Change(found.model_copy(update=update)))
    await jump(wiring)
    await wiring.schedule.take(0.1)
    assert await process_due(wiring) == 1
    assert [one.id for one in await wiring.schedule.take(0.1)] == [], "nobody is to take it over yet"
    assert (await find(wiring, record)).receipt.redrives == 0


async def test_mark_goes_back_only_with_a_jump(wiring: Wiring) -> None:
    beats = JumpDetector(wiring)
    first = await reading(wiring)
    for offset_ms, expected_ms in ((0, 0), (-2000, 0), (1000, 1000), (-HOUR, -HOUR)):
        uptime_ms = beats._kept_at_ms + 1000
        await beats.note(first.model_copy(update={"at_ms": first.at_ms + offset_ms, "uptime_ms": uptime_ms}))
        assert wiring.freezes.mark_ms() == first.at_ms + expected_ms
    assert await frozen(wiring) == [], "a clock that goes back expires nothing"


async def test_record_sees_no_time_before_the_mark(wiring: Wiring) -> None:
    ahead = await reading(wiring, ago_ms=-2000)
    await JumpDetector(wiring).note(ahead)
    record = await make_pending(wiring)
    assert record.created_at_ms == ahead.at_ms
