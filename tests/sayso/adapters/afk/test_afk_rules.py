"""AFK's own rules and failure policies beside Sayso's decisions."""

from types import SimpleNamespace
from typing import Any

import pytest

from sayso.adapters.afk import gate
from sayso.adapters.afk.hooks import Hooks
from sayso.adapters.starting import start
from sayso.core.records.suspensions import RunStatus
from sayso.errors import SaysoError
from sayso.runner.protocol import Done
from sayso.testing import InProcessDesk
from tests.frameworks.contracts import (
    AgentRunEvent,
    ApprovalRequest,
    FailSafeConfig,
    PolicyDecision,
    PolicyEvent,
    UserInputRequest,
)
from tests.frameworks.contracts.scripted import MemoryRows, Rule, pay
from tests.sayso.adapters.afk.worker_setups import AgentSetup, decide, read_text, resume
from tests.sayso.runner.test_execution import Kept


@pytest.mark.parametrize("decision", [True, "No."])
async def test_afk_rule_for_approval_is_decided_by_sayso(decision: Any) -> None:
    rule = Rule("tool_before_execute", PolicyDecision(action="request_approval", reason="Ask"))
    setup = AgentSetup(([pay("ann", 1)],), options={"policy_engine": rule})
    asked = await setup.begin()
    await resume(setup, asked, decide(asked, decision))
    assert setup.pay_tool.paid == ([("ann", 1)] if decision is True else [])


@pytest.mark.parametrize(("decision", "paid"), [({"to": "bob", "amount": 3}, [("bob", 3)]), ("No.", [])])
async def test_afk_rule_for_a_value_is_answered_by_sayso(decision: Any, paid: Any) -> None:
    rule = Rule(
        "tool_before_execute", PolicyDecision(action="request_user_input", request_payload={"target_arg": "to"})
    )
    setup = AgentSetup(([pay("ann", 3)],), options={"policy_engine": rule})
    asked = await setup.begin()
    reached = await resume(setup, asked, decide(asked, decision))
    assert setup.pay_tool.paid == paid
    assert ("No." in read_text(reached)) is (decision == "No.")


async def test_afk_rule_that_denies_a_call_is_final() -> None:
    class Denying(Rule):
        def evaluate(self, event: Any) -> Any:
            """Deny payments to Bob."""
            denied = (event.tool_args or {}).get("to") == "bob"
            return SimpleNamespace(decision=self._decision if denied else PolicyDecision())

    rule = Denying("", PolicyDecision(action="deny", reason="Not Bob."))
    setup = AgentSetup(([pay("bob", 2), pay("ann", 1, "c1")],), options={"policy_engine": rule})
    asked = await setup.begin()
    gate = decide(asked, True, True)
    await resume(setup, asked, gate)
    assert setup.pay_tool.paid == [("ann", 1)]
    await gate.close()


async def test_afk_rule_about_the_model_is_denied() -> None:
    rule = Rule("llm_before_execute", PolicyDecision(action="request_approval"))
    setup = AgentSetup((), options={"policy_engine": rule})
    ended = await setup.framework.begin("Pay them.")
    assert isinstance(ended, Done)
    assert (ended.status, ended.error) == (RunStatus.FAILED, "LLM call approval denied")


async def test_start_raises_if_afk_fails_the_run_before_its_calls() -> None:
    rule = Rule("llm_before_execute", PolicyDecision(action="request_approval"))
    setup = AgentSetup((), options={"policy_engine": rule})
    agent = gate(setup.build, name="bot", memory=lambda: setup.memory)
    with pytest.raises(SaysoError, match="LLM call approval denied"):
        await start(agent, "Pay them.", InProcessDesk().async_client())


async def test_calls_of_a_subagent_are_denied() -> None:
    hooks = Hooks(MemoryRows())
    for run_id in ("run_1", "run_2"):
        data = {"tool_names": ["pay"], "tool_call_ids": ["c0"], "tool_call_count": 1}
        await hooks.notify(AgentRunEvent("tool_batch_started", run_id, "thread", "running", 1, data=data))
    event = PolicyEvent("tool_before_execute", "run_2", "thread", 1, {}, "pay", {})
    assert (await hooks.role(event)).action == "deny"
    judged = {"event_type": "tool_before_execute", "action": "request_approval"}
    await hooks.notify(AgentRunEvent("policy_decision", "run_2", "thread", "running", 1, data=judged))
    approval = await hooks.request_approval(ApprovalRequest("run_2", "thread", 1, "why", {}))
    value = await hooks.request_user_input(UserInputRequest("run_2", "thread", 1, "what", {}))
    assert (approval.kind, value.kind) == ("deny", "deny")


@pytest.mark.parametrize(
    ("policy", "status"), [("fail_run", RunStatus.FAILED), ("retry_then_degrade", RunStatus.DEGRADED)]
)
async def test_resume_ends_the_run_as_afk_does(policy: str, status: RunStatus) -> None:
    fail_safe = FailSafeConfig(approval_denial_policy=policy)
    setup = AgentSetup(([pay("ann", 1), pay("bob", 2, "c1")],), {"fail_safe": fail_safe})
    asked, kept = await setup.begin(), Kept()
    gate = decide(asked, True, "Not Bob.", kept=kept)
    ended = await resume(setup, asked, gate)
    await gate.close()
    assert isinstance(ended, Done)
    assert (ended.status, setup.pay_tool.paid) == (status, [])
    assert "'pay' denied" in str(ended.error)
    assert [one.result and one.result.error for one in kept.batches[0].calls] == [
        "The framework did not start this call.",
        "Not Bob.",
    ]
