"""Items that are withdrawn, late or decided by a clock in doubt, and values of any shape."""

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import Status
from sayso.core.records.terms import RuleTerms
from sayso.errors import AlreadyDecided, ClockInDoubt, DeadlinePassed
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending, person
from tests.service.core.desk.test_desk import wiring  # noqa: F401


async def test_what_is_decided_or_late_cannot_be_withdrawn(wiring: Wiring) -> None:  # noqa: F811
    decided = await approve(wiring, await make_pending(wiring))
    with pytest.raises(AlreadyDecided):
        await wiring.desk.withdraw(decided.id, person("demo"))
    late = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)), late_ms=5_000)
    with pytest.raises(DeadlinePassed):
        await wiring.desk.withdraw(late.id, person("demo"))
    found = (await wiring.desk.suspensions.read(late.id)).record
    assert found is not None
    assert found.status is Status.DECIDED, "its fallback has decided"
    waiting = await make_pending(wiring)
    gone = await wiring.desk.withdraw(waiting.id, person("demo"))
    assert gone.record.status is Status.CANCELLED


async def test_nobody_decides_what_is_late_only_by_a_clock_in_doubt(wiring: Wiring) -> None:  # noqa: F811
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)), late_ms=5_000)
    now_ms = await wiring.schedule.now_ms()
    await wiring.freezes.doubt_time(now_ms - 4_500, now_ms)
    yes = DecisionRequest(action="approve", digest=record.items[0].digest)
    with pytest.raises(ClockInDoubt, match="It is unknown whether the deadline"):
        await wiring.desk.decide(record.id, "i1", yes, person("anna"))


async def test_a_value_of_which_nothing_is_said_may_be_any_that_the_tool_takes(wiring: Wiring) -> None:  # noqa: F811
    asked = ask(kind=ItemKind.INPUT)
    assert asked.response_schema is None
    record = await make_pending(wiring, asked)
    given = DecisionRequest(action="value", value=12.5, digest=record.items[0].digest)
    saved = await wiring.desk.decide(record.id, "i1", given, person("anna"))
    assert saved.record.status is Status.DECIDED
