"""A worker's step survives an outage of the store and is applied once."""

import pytest

from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, Intent, SuspensionRecord
from sayso.core.transitions.execution import Fence, renew
from sayso.errors import IllegalTransition, StaleAttempt, Unavailable
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.sayso.core.transitions.test_execution import NOTE
from tests.sayso.samples import intent
from tests.workers.runs import start, trail
from workers.resume.outages import next_step, through_outages

FENCE = Fence("w1", 1, 30_000)
STATE = seal_state(b'{"phase": 1}')


async def leased(wiring: Wiring) -> SuspensionRecord:
    await start(wiring)
    run = await wiring.runs.read("run_x")
    return (await wiring.desk.lease(run.suspension_id, "w1", 30_000)).record


async def renewed(wiring: Wiring, record: SuspensionRecord) -> None:
    """Somebody commits in between: the step's own commit is no longer the last one."""

    def verb(found: SuspensionRecord, now_ms: int) -> Change:
        return renew(found, FENCE, now_ms)

    await wiring.desk.suspensions.change(record.id, verb)


async def test_step_with_a_lost_reply_is_applied_once(wiring: Wiring) -> None:
    record, fence, tries = await leased(wiring), next_step(FENCE), 0

    async def step() -> Saved:
        nonlocal tries
        tries += 1
        saved = await wiring.desk.checkpoint(record.id, fence, STATE, NOTE)
        if tries < 3:
            await renewed(wiring, record)
            raise Unavailable
        return saved

    assert (await through_outages(step)).repeated
    assert (await trail(wiring)).count("warning") == 1
    await wiring.desk.checkpoint(record.id, next_step(FENCE), STATE, NOTE)
    assert (await trail(wiring)).count("warning") == 2


async def test_redeem_sent_twice_starts_a_call_once(wiring: Wiring) -> None:
    record, fence = await leased(wiring), next_step(FENCE)
    begun: tuple[Intent, ...] = (intent(None),)
    once = await wiring.desk.redeem(record.id, fence, begun, NOTE, STATE)
    await renewed(wiring, record)
    twice = await wiring.desk.redeem(record.id, fence, begun, NOTE, STATE)
    assert twice.repeated
    assert len(once.record.journal) == len(twice.record.journal) == 1
    assert (await trail(wiring)).count("warning") == 1


async def test_lease_with_a_lost_reply_is_found_by_its_step(wiring: Wiring) -> None:
    await start(wiring)
    run = await wiring.runs.read("run_x")
    taken = [
        await wiring.desk.lease(run.suspension_id, "w1", 30_000, step_id="step_1"),
        await wiring.desk.lease(run.suspension_id, "w1", 30_000, step_id="step_1"),
    ]
    assert [saved.repeated for saved in taken] == [False, True]
    assert [saved.record.lease.step for saved in taken if saved.record.lease] == ["step_1", "step_1"]
    other = await wiring.desk.lease(run.suspension_id, "w1", 30_000, step_id="step_2")
    assert other.record.lease is not None
    assert other.record.lease.step == "step_1", "the run is driven already"


async def test_refused_step_is_not_repeated(wiring: Wiring) -> None:
    record, tries = await leased(wiring), 0

    async def step() -> Saved:
        nonlocal tries
        tries += 1
        return await wiring.desk.checkpoint(record.id, Fence("w2", 1, 30_000), STATE, ())

    with pytest.raises((StaleAttempt, IllegalTransition)):
        await through_outages(step)
    assert tries == 1
