"""Which rules apply to edits and to calls in doubt, and how freezes and leases interact."""

import asyncio
from typing import Any

import pytest

from sayso.core.records.decisions import DecisionRequest, Verdict
from sayso.core.records.items import Doubt
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Intent, Status, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.permits import put_in_doubt
from sayso.errors import PolicyForbids
from service.core.wiring import Wiring
from tests.builders import REFUND, approve, ask, make_pending, make_running, person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - {id: refunds, tool: refund, priority: 1, action: request_approval, reason: money leaves}
  - {id: large, tool: refund, priority: 900, when: args.amount > 500, action: request_approval, reason: a lot of money}
  - {id: small, tool: refund, priority: 800, when: args.amount < 10, action: allow}
"""


@pytest.fixture
def rules() -> str:
    return POLICY


async def say(wiring: Wiring, record: SuspensionRecord, action: str, **word: Any) -> SuspensionRecord:
    request = DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest, **word})
    return (await wiring.desk.decide(record.id, "i1", request, person("anna"))).record


@pytest.mark.parametrize("choice", ["skip", "run_again", "fail"])
async def test_the_rules_are_not_asked_whether_a_call_has_run(wiring: Wiring, choice: str) -> None:
    doubt = Doubt(begun_at_ms=0, holder="w1", attempt=1, idempotency_key="k")
    call = ToolCall(call_id="call_0", index=0, name="refund", args={"order": "A", "amount": 900})
    record = await make_pending(wiring, put_in_doubt(call, REFUND.digest, doubt))
    answered = await say(wiring, record, "value", value={"choice": choice})
    outcome = answered.items[0].outcome
    assert answered.status is Status.DECIDED
    assert outcome is not None
    assert (outcome.verdict, outcome.value) == (Verdict.ANSWERED, {"choice": choice})


async def test_an_edit_that_a_rule_allows_is_the_last_word(wiring: Wiring) -> None:
    edited = await say(wiring, await make_pending(wiring), "approve", args={"order": "A-1", "amount": 5})
    assert edited.status is Status.DECIDED


async def test_an_edit_that_another_rule_asks_about_is_refused_for_an_unknown_tool(wiring: Wiring) -> None:
    plain = ask()
    unknown = plain.model_copy(update={"tool": plain.tool.model_copy(update={"definition": "e" * 64})})
    record = await make_pending(wiring, unknown)
    with pytest.raises(PolicyForbids, match="no longer stored"):
        await say(wiring, record, "approve", args={"order": "A-1", "amount": 900})
    edited = await say(wiring, record, "approve", args={"order": "A-1", "amount": 20})
    assert edited.status is Status.DECIDED, "the rule that asked covers it; the worker checks that it fits"


async def test_ended_freeze_wakes_only_suspensions_it_held(wiring: Wiring) -> None:
    record = await approve(wiring, await make_pending(wiring))
    freeze = await wiring.freezes.freeze("tool:other", "", person("root"))
    unfrozen = await wiring.freezes.unfreeze(freeze.id, person("root"))
    woken = await wiring.desk.wake(record.id, unfrozen)
    assert woken.record.version == record.version


async def test_looking_early_at_what_is_frozen_changes_nothing(wiring: Wiring) -> None:
    record = await make_pending(wiring)
    await wiring.freezes.freeze("all", "", person("root"))
    looked = await wiring.desk.tick(record.id)
    assert looked.record.version == record.version


async def test_a_lease_that_is_held_already_plans_nothing(wiring: Wiring) -> None:
    record = await make_running(wiring)
    await wiring.desk.lease(record.id, "w1", 30_000)
    planned: list[SuspensionRecord] = []

    def plan(found: SuspensionRecord, _fence: Fence, _now_ms: int) -> tuple[Intent, ...]:
        planned.append(found)
        return ()

    again = await wiring.desk.lease(record.id, "w1", 30_000, plan)
    assert again.repeated
    assert planned == []


async def test_racing_requests_with_one_key_make_one_run(wiring: Wiring) -> None:
    starts = (wiring.desk.start(run_ref(), seal_state(b"{}"), key="k", request="the same") for _ in range(8))
    saved = await asyncio.gather(*starts)
    assert len({one.record.run.id for one in saved}) == 1
    assert sum(not one.repeated for one in saved) == 1
