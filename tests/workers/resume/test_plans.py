"""A plan made within the lease's transition is executed only if that commit succeeded."""

from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import Change, Intent, SuspensionRecord
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.freezing import hold
from service.core.store.suspensions.reading import pack_record
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.builders import CLEAR
from tests.workers.resume.resumers.test_calls import CALLS, answer, bring
from workers.resume import driving as resume
from workers.resume.plans import CallPlan, FirstPlan, PlanInputs


def inputs(wiring: Wiring) -> PlanInputs:
    return PlanInputs(resume.agents, wiring.rulebook.refresh(), Revocations())


def begin(wiring: Wiring) -> FirstPlan:
    return FirstPlan(inputs(wiring))


async def approve(wiring: Wiring) -> Saved:
    asked = await bring(wiring, *CALLS[:2])
    await answer(wiring, asked, action="approve")
    found = await wiring.desk.suspensions.read(asked.record.id)
    assert found.record is not None
    return Saved(found.record, found.now_ms, head=found.head)


async def take_up(wiring: Wiring, first: FirstPlan, suspension_id: str, packed: bytes = b"") -> Saved:
    known = wiring.desk.suspensions.recall_packed(suspension_id, packed) if packed else None
    return await wiring.desk.lease(suspension_id, "w1", 30_000, first.plan, None, "step_1", known)


async def test_plan_committed_with_the_lease_is_found(wiring: Wiring) -> None:
    decided, first = await approve(wiring), begin(wiring)
    leased = await take_up(wiring, first, decided.record.id)
    plan = first.find(leased)
    assert isinstance(plan, CallPlan)
    assert [one.call.name for one in plan.planned] == ["look_up", "refund"]
    assert [one.tool for one in leased.record.journal] == ["look_up", "refund"]
    assert all(one.read is not None for one in plan.planned)
    assert all(item.permit for item in leased.record.items if item.item_id)


async def test_only_the_last_plan_of_a_lost_race_counts(wiring: Wiring) -> None:
    decided = await approve(wiring)
    packed = pack_record(decided.record, decided.head, "c", CLEAR)

    def put_off(record: SuspensionRecord, now_ms: int) -> Change:
        return hold(record, now_ms)

    await wiring.desk.suspensions.change(decided.record.id, put_off)
    seen: list[int] = []

    class Watched(FirstPlan):
        def plan(self, record: SuspensionRecord, fence: Fence, now_ms: int) -> tuple[Intent, ...]:
            seen.append(record.version)
            return super().plan(record, fence, now_ms)

    first = Watched(inputs(wiring))
    leased = await take_up(wiring, first, decided.record.id, packed)
    assert seen == [decided.record.version, decided.record.version + 1]
    assert first.find(leased) is not None
    assert first.find(leased._replace(record=leased.record.model_copy(update={"version": seen[-1]}))) is None


async def test_lease_of_an_earlier_try_has_no_plan(wiring: Wiring) -> None:
    decided, lost, again = await approve(wiring), begin(wiring), begin(wiring)
    await take_up(wiring, lost, decided.record.id)
    found = await take_up(wiring, again, decided.record.id)
    assert found.repeated
    assert again.find(found) is None


async def test_no_plan_if_it_needs_more_than_the_record(wiring: Wiring) -> None:
    decided, first = await approve(wiring), begin(wiring)
    leased = await take_up(wiring, first, decided.record.id)
    begun = leased._replace(record=leased.record.model_copy(update={"version": leased.record.version + 1}))
    assert first.plan(leased.record, None, leased.now_ms) == ()  # type: ignore[arg-type]
    assert first.find(begun) is None, "some of its calls were begun before"
