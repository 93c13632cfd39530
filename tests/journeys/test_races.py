"""A reviewer and the timeout race for one item: it gets one outcome, and every reader sees the same one."""

import asyncio
from collections import Counter

from sayso.core.clock import new_id
from sayso.core.records.chain import find_break
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest, Verdict
from sayso.core.records.events import EventType
from sayso.core.records.items import ItemDraft, ItemTool
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, RunRef, Status, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.transitions.deciding import suspend
from sayso.errors import AlreadyDecided, DeadlinePassed
from service.assembly import assemble
from service.core.desk.changes import draft_suspension
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring

ROUNDS = 200
LEFT_MS = 12
"""How long before its deadline an item is asked; then both go for it, from 4 ms too early to 4 ms too late."""

ANNA = Actor(id="anna", kind=ActorKind.HUMAN)


async def test_decision_and_timeout_race_has_one_outcome_in_200_rounds(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        rounds = [await race(wiring, head_start_ms=place % 9 - 4) for place in range(ROUNDS)]

        outcomes = Counter([await outcome_of(wiring, suspension_id, result) for suspension_id, result in rounds])
        ready = await wiring.schedule.take(1, ROUNDS + 1)
        assert sum(outcomes.values()) == ROUNDS
        assert set(outcomes) <= {"anna", "timeout"}
        assert sorted(one.id for one in ready) == sorted(suspension_id for suspension_id, _ in rounds)


async def race(wiring: Wiring, head_start_ms: int) -> tuple[str, Saved | Exception]:
    """Race Anna against two clocks for one item; return its suspension and her response."""
    asked = await ask(wiring)
    (item,) = asked.items
    yes = DecisionRequest(action="approve", digest=item.digest)
    while await wiring.schedule.now_ms() < item.terms.deadline_at_ms - head_start_ms:
        pass
    result, *ticks = await asyncio.gather(
        wiring.desk.decide(asked.id, item.item_id, yes, ANNA),
        wiring.desk.tick(asked.id),
        wiring.desk.tick(asked.id),
        return_exceptions=True,
    )
    while (await wiring.desk.tick(asked.id)).record.status is Status.PENDING:
        pass
    assert not [look for look in ticks if isinstance(look, BaseException)]
    assert isinstance(result, Saved | AlreadyDecided | DeadlinePassed)
    return asked.id, result


async def ask(wiring: Wiring) -> SuspensionRecord:
    """Suspend a run with one item that has `LEFT_MS` left of its second."""
    run = RunRef(id=new_id("run"), agent="demo", owner="demo", thread_id="thread")
    draft = draft_suspension(TENANT, run, state=seal_state(b"{}"))
    call = ItemTool(name="send_email", args={"to": "ben@example.com"}, definition="")
    one = ItemDraft(call_id="call_1", index=0, tool=call, terms=RuleTerms(timeout_s=1))

    def begin(now_ms: int) -> Change:
        return suspend(draft, (one,), now_ms - 1000 + LEFT_MS)

    return (await wiring.desk.suspensions.create(draft.id, begin)).record


async def outcome_of(wiring: Wiring, suspension_id: str, result: Saved | Exception) -> str:
    """Check that record, trail and Anna's response agree, and return who decided."""
    found = await wiring.desk.suspensions.read(suspension_id)
    assert found.record is not None
    (item,) = found.record.items
    assert item.outcome is not None
    assert len(item.decisions) == 1
    won = isinstance(result, Saved)
    assert item.outcome.by.id == ("anna" if won else "timeout")
    assert item.outcome.verdict is (Verdict.APPROVED if won else Verdict.DENIED)
    trail = await wiring.runs.trail(found.record.run.id)
    assert [entry.type for entry in trail] == [
        EventType.RUN_PAUSED,
        EventType.DECISION_RECORDED if won else EventType.TIMED_OUT,
        EventType.DECIDED,
    ]
    assert find_break(trail) is None
    return item.outcome.by.id
