"""Tests of the AFK adapter."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from sayso.adapters.afk import Afk, gate
from sayso.adapters.afk.checkpoints import shift
from sayso.adapters.afk.hooks import Hooks
from sayso.adapters.starting import start
from sayso.canonical_json import JsonObject
from sayso.errors import Conflict, InvalidInput, InvalidJson, SaysoError
from sayso.formats.external_events import Kind, StoredEvent
from sayso.policy.engine import Action
from sayso.records.suspensions import RunStatus
from sayso.records.tool_calls import ToolCall as OurCall
from sayso.records.tool_calls import ToolResult as OurResult
from sayso.runner.batches import Batch, BatchCall, end_call
from sayso.runner.execution import CallExecutor, use_executor
from sayso.runner.protocol import Done, FrameworkTurn
from sayso.runner.tools import CallContext
from sayso.testing import InProcessDesk
from sayso.timeline.merging import build_entries
from service.settings import CHECKOUT
from tests.frameworks.contracts import (
    IS_REAL,
    Agent,
    AgentCircuitOpenError,
    AgentRunEvent,
    ApprovalRequest,
    FailSafeConfig,
    PolicyDecision,
    PolicyEvent,
    Runner,
    RunnerConfig,
    ToolDeferredHandle,
    ToolResult,
    UserInputRequest,
    tool,
)
from tests.frameworks.contracts.players import Money, Player, Purse, Rows, Rule, pay
from tests.sayso.runner.test_execution import Kept


@dataclass
class Bot:
    """An AFK agent behind `Framework`, and its effects."""

    turns: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    tools: list[Any] = field(default_factory=list)
    memory: Rows = field(default_factory=Rows)
    purse: Purse = field(default_factory=Purse)
    hooks: list[Hooks] = field(default_factory=list)

    @property
    def framework(self) -> Afk:
        """The agent of a worker."""
        return Afk(self.build, lambda: self.memory)

    def build(self, hooks: Hooks) -> tuple[Any, Any]:
        """Return the runner and the agent."""
        self.hooks.append(hooks)
        tools = hooks.gate([*(self.tools or [self.purse.tool])])
        given = {"instructions": "Pay.", "tools": tools, "policy_roles": [hooks.role], **self.options}
        agent = Agent(model=Player(*self.turns), **given)
        config = RunnerConfig(interaction_mode="external", checkpoint_async_writes=False)
        return Runner(memory_store=hooks.memory, interaction_provider=hooks.provider, config=config), agent

    async def begin(self) -> FrameworkTurn:
        """Run to the first calls."""
        reached = await self.framework.begin("Pay them.")
        assert isinstance(reached, FrameworkTurn)
        return reached


def decide(turn: FrameworkTurn, *decisions: Any, kept: Kept | None = None) -> CallExecutor:
    """Return an executor. Per call: True to run, arguments to edit, a text to deny, or a result."""
    calls, contexts = [], {}
    for index, (requested, decision) in enumerate(zip(turn.calls, decisions, strict=True)):
        args = decision if isinstance(decision, dict) else json.loads(requested.args_json)
        call = BatchCall(
            call=OurCall(call_id=requested.call_id, index=index, name=requested.name, args=args),
            action=Action.ALLOW,
            reason="",
        )
        if isinstance(decision, str):
            call = end_call(call, decision)
        elif isinstance(decision, OurResult):
            call = call.model_copy(update={"result": decision})
        else:
            contexts[index] = CallContext("run", requested.call_id, f"key{index}")
        calls.append(call)
    return CallExecutor(Batch(calls=tuple(calls), started_step=1), contexts, (kept or Kept()).keep)


async def resume(bot: Bot, asked: FrameworkTurn, gate: CallExecutor) -> FrameworkTurn | Done:
    """Resume like a worker."""
    with use_executor(gate):
        return await bot.framework.resume(asked.native, gate)


def text_of(reached: FrameworkTurn | Done) -> str:
    assert isinstance(reached, Done)
    assert isinstance(reached.result, dict)
    return str(reached.result["text"])


async def test_begin_stops_before_any_call_of_the_turn() -> None:
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await bot.begin()
    assert [(one.call_id, one.name) for one in asked.calls] == [("c0", "pay"), ("c1", "pay")]
    assert (asked.text, bot.purse.paid) == ("Turn 0.", [])


async def test_resume_applies_the_decision_on_each_call() -> None:
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1"), pay("cid", 3, "c2")],))
    asked = await bot.begin()
    reached = await resume(bot, asked, decide(asked, True, "Not Bob.", {"to": "cid", "amount": 9}))
    assert sorted(bot.purse.paid) == [("ann", 1), ("cid", 9)]
    assert "Not Bob." in text_of(reached)


async def test_resume_refuses_calls_that_were_not_decided() -> None:
    """A state may hold other calls than the reviewed ones. Only decided calls run."""
    bot = Bot(([pay("ann", 1), pay("eve", 1000, "c1")],))
    asked = await bot.begin()
    fewer = FrameworkTurn(asked.native, asked.calls[:1])
    await resume(bot, asked, decide(fewer, True))
    assert bot.purse.paid == [("ann", 1)]
    renamed = FrameworkTurn(asked.native, (asked.calls[0].model_copy(update={"name": "look"}),))
    gate = decide(renamed, True)
    await resume(bot, asked, gate)
    assert bot.purse.paid == [("ann", 1)]
    changed = decide(fewer, {"to": "bob", "amount": 2})
    bot.memory.rows.clear()
    await resume(bot, asked, changed)
    assert bot.purse.paid == [("ann", 1), ("bob", 2)]


async def test_resume_stops_at_the_next_turn() -> None:
    bot = Bot(([pay("ann", 1)], [pay("bob", 2)]))
    first = await bot.begin()
    second = await resume(bot, first, decide(first, True))
    assert isinstance(second, FrameworkTurn)
    assert (first.native["step"], second.native["step"], bot.purse.paid) == (1, 2, [("ann", 1)])


async def test_resume_works_with_an_empty_store() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    bot.memory.rows.clear()
    await resume(bot, asked, decide(asked, True))
    assert bot.purse.paid == [("ann", 1)]


async def test_resume_gives_the_same_decisions_when_repeated() -> None:
    """A call that ran keeps its result, and a denied one stays denied, regardless of AFK's later checkpoints."""
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await bot.begin()
    first = await resume(bot, asked, decide(asked, True, "No."))
    result = OurResult(call_id="c0", tool_name="pay", success=True, output="paid 1 to ann")
    second = await resume(bot, asked, decide(asked, result, "No."))
    assert bot.purse.paid == [("ann", 1)]
    assert text_of(first) == text_of(second)


async def test_resume_runs_calls_without_ids_once() -> None:
    bot = Bot(([pay("ann", 1, None), pay("ann", 1, None)],))
    asked = await bot.begin()
    await resume(bot, asked, decide(asked, True, True))
    assert bot.purse.paid == [("ann", 1), ("ann", 1)]


async def test_resume_stops_if_results_cannot_be_saved() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    with pytest.raises(Conflict):
        await resume(bot, asked, decide(asked, True, kept=Kept(refuse=True)))
    assert not [key for _, key in bot.memory.rows if "post_tool_batch" in key]


async def test_resume_excludes_waiting_from_run_time() -> None:
    bot = Bot(([pay("ann", 1)],), options={"fail_safe": FailSafeConfig(max_wall_time_s=60)})
    asked = await bot.begin()
    saved: Any = asked.native["saved"]
    hours_ago = {**saved, "payload": {**saved["payload"], "started_at_s": saved["payload"]["started_at_s"] - 7200}}
    paused: Any = asked.native["suspended_at_ms"]
    native = {**asked.native, "saved": hours_ago, "suspended_at_ms": paused - 7_200_000}
    await resume(bot, FrameworkTurn(native, asked.calls), decide(asked, True))
    assert bot.purse.paid == [("ann", 1)]


async def test_resume_includes_earlier_run_time() -> None:
    bot = Bot(([pay("ann", 1)],), options={"fail_safe": FailSafeConfig(max_wall_time_s=60)})
    asked = await bot.begin()
    saved: Any = asked.native["saved"]
    late = {**saved, "payload": {**saved["payload"], "started_at_s": saved["payload"]["started_at_s"] - 7200}}
    ended = await resume(bot, FrameworkTurn({**asked.native, "saved": late}, asked.calls), decide(asked, True))
    assert isinstance(ended, Done)
    assert (ended.status, "max_wall_time_s" in str(ended.error), bot.purse.paid) == (RunStatus.FAILED, True, [])


def test_shift_moves_tickets_by_the_time_waited() -> None:
    payload: Any = {"started_at_s": 10.0, "background_tools_pending": [{"ticket_id": "t", "created_at_s": 12.0}]}
    moved: Any = shift({"step": 1, "payload": payload}, 5.0)
    assert moved["payload"]["started_at_s"] == 15
    assert moved["payload"]["background_tools_pending"][0]["created_at_s"] == 17


async def test_background_tool_keeps_its_ticket_and_resolves_later() -> None:
    @tool(args_model=Money, name="pay", description="Pay later.")
    async def later(args: Money) -> ToolResult:
        return ToolResult(deferred=ToolDeferredHandle(ticket_id="t1", tool_name="pay", resume_hint="tomorrow"))

    bot = Bot(([pay("ann", 1)], [pay("bob", 2)]), tools=[later])
    asked = await bot.begin()
    kept = Kept()
    second = await resume(bot, asked, decide(asked, True, kept=kept))
    assert isinstance(second, FrameworkTurn)
    result = kept.batches[0].calls[0].result
    assert result is not None
    where = {"thread_id": str(asked.native["thread_id"]), "run_id": str(asked.native["run_id"])}
    runner, _ = bot.build(Hooks(bot.memory))
    assert [one["ticket_id"] for one in await runner.list_background_tools(**where)] == ["t1"]
    bot.memory.rows.clear()
    again = await resume(bot, asked, decide(asked, result))  # a worker was lost: the call is not run again
    assert isinstance(again, FrameworkTurn)
    await runner.resolve_background_tool(**where, ticket_id="t1", output="paid after all")
    ended = await resume(bot, again, decide(again, "Not Bob."))
    assert "paid after all" in text_of(ended)


async def test_begin_names_the_key_of_a_state_that_is_not_json() -> None:
    bot = Bot(([pay("ann", float("nan"))],))
    with pytest.raises(InvalidJson, match=r"saved.*arguments\.amount"):
        await bot.framework.begin("Pay them.")


async def test_begin_refuses_a_runner_with_another_store() -> None:
    bot = Bot(([pay("ann", 1)],))
    elsewhere = Rows()

    def build(hooks: Hooks) -> tuple[Any, Any]:
        _, agent = bot.build(hooks)
        return Runner(memory_store=elsewhere, interaction_provider=hooks.provider), agent

    with pytest.raises(InvalidInput, match=r"memory_store=hooks\.memory"):
        await Afk(build, lambda: bot.memory).begin("Pay them.")


async def test_find_fault_reports_a_run_resumed_elsewhere() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    assert await bot.framework.find_fault(asked.native) is None
    _, agent = bot.build(Hooks(bot.memory))
    stranger = Runner(memory_store=bot.memory)
    await stranger.resume(agent, run_id=str(asked.native["run_id"]), thread_id=str(asked.native["thread_id"]))
    assert "another process has resumed it" in str(await bot.framework.find_fault(asked.native))
    assert bot.purse.paid == []


async def test_find_fault_ignores_our_own_earlier_attempt() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    await resume(bot, asked, decide(asked, True))
    assert await bot.framework.find_fault(asked.native) is None


@pytest.mark.parametrize("said", [True, "No."])
async def test_afk_rule_for_approval_is_decided_by_sayso(said: Any) -> None:
    rule = Rule("tool_before_execute", PolicyDecision(action="request_approval", reason="Ask"))
    bot = Bot(([pay("ann", 1)],), options={"policy_engine": rule})
    asked = await bot.begin()
    await resume(bot, asked, decide(asked, said))
    assert bot.purse.paid == ([("ann", 1)] if said is True else [])


@pytest.mark.parametrize(("said", "paid"), [({"to": "bob", "amount": 3}, [("bob", 3)]), ("No.", [])])
async def test_afk_rule_for_a_value_is_answered_by_sayso(said: Any, paid: Any) -> None:
    rule = Rule(
        "tool_before_execute", PolicyDecision(action="request_user_input", request_payload={"target_arg": "to"})
    )
    bot = Bot(([pay("ann", 3)],), options={"policy_engine": rule})
    asked = await bot.begin()
    reached = await resume(bot, asked, decide(asked, said))
    assert bot.purse.paid == paid
    assert ("No." in text_of(reached)) is (said == "No.")


async def test_afk_rule_that_denies_a_call_is_final() -> None:
    class Denying(Rule):
        def evaluate(self, event: Any) -> Any:
            """Deny payments to Bob."""
            denied = (event.tool_args or {}).get("to") == "bob"
            return SimpleNamespace(decision=self._decision if denied else PolicyDecision())

    rule = Denying("", PolicyDecision(action="deny", reason="Not Bob."))
    bot = Bot(([pay("bob", 2), pay("ann", 1, "c1")],), options={"policy_engine": rule})
    asked = await bot.begin()
    gate = decide(asked, True, True)
    await resume(bot, asked, gate)
    assert bot.purse.paid == [("ann", 1)]
    await gate.close()


async def test_afk_rule_about_the_model_is_denied() -> None:
    rule = Rule("llm_before_execute", PolicyDecision(action="request_approval"))
    bot = Bot((), options={"policy_engine": rule})
    ended = await bot.framework.begin("Pay them.")
    assert isinstance(ended, Done)
    assert (ended.status, ended.error) == (RunStatus.FAILED, "LLM call approval denied")


async def test_start_raises_if_afk_fails_the_run_before_its_calls() -> None:
    rule = Rule("llm_before_execute", PolicyDecision(action="request_approval"))
    bot = Bot((), options={"policy_engine": rule})
    agent = gate(bot.build, name="bot", memory=lambda: bot.memory)
    with pytest.raises(SaysoError, match="LLM call approval denied"):
        await start(agent, "Pay them.", InProcessDesk().async_client())


async def test_calls_of_a_subagent_are_denied() -> None:
    hooks = Hooks(Rows())
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


async def test_tool_called_outside_the_gate_does_not_run() -> None:
    bot = Bot(([pay("ann", 1)],))
    await bot.begin()
    result = await bot.hooks[-1].tools[0].call({"to": "ann", "amount": 1}, tool_call_id="c0")
    assert (result.success, bot.purse.paid) == (False, [])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda agent, purse: agent.tools.append(purse.tool), "not gated"),
        (lambda agent, purse: agent.policy_roles.clear(), "lacks Sayso.s role"),
        (lambda agent, purse: agent.subagents.append(agent), "has subagents"),
    ],
    ids=["a loose tool", "no role", "subagents"],
)
def test_gate_refuses_an_agent_with_ungated_tools(change: Any, words: str) -> None:
    bot = Bot(())

    def build(hooks: Hooks) -> tuple[Any, Any]:
        runner, agent = bot.build(hooks)
        change(agent, bot.purse)
        return runner, agent

    with pytest.raises(InvalidInput, match=words):
        gate(build, name="bot", memory=lambda: bot.memory)


def test_gate_describes_the_tools() -> None:
    agent = gate(Bot(()).build, name="bot", memory=Rows, idempotent={"pay"})
    (pay_,) = agent.tools
    assert (pay_.name, pay_.definition.description, pay_.idempotent) == ("pay", "Pay somebody.", True)
    assert agent.manifest().origin.framework == "afk"


async def test_begin_returns_the_events_before_the_suspension() -> None:
    asked = await Bot(([pay("ann", 1)],)).begin()
    kinds = [one["type"] for one in asked.external_events]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_paused")


@pytest.mark.parametrize(
    ("policy", "status"), [("fail_run", RunStatus.FAILED), ("retry_then_degrade", RunStatus.DEGRADED)]
)
async def test_resume_ends_the_run_as_afk_does(policy: str, status: RunStatus) -> None:
    fail_safe = FailSafeConfig(approval_denial_policy=policy)
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1")],), {"fail_safe": fail_safe})
    asked, kept = await bot.begin(), Kept()
    gate = decide(asked, True, "Not Bob.", kept=kept)
    ended = await resume(bot, asked, gate)
    await gate.close()
    assert isinstance(ended, Done)
    assert (ended.status, bot.purse.paid) == (status, [])
    assert "'pay' denied" in str(ended.error)
    assert [one.result and one.result.error for one in kept.batches[0].calls] == [
        "The framework did not start this call.",
        "Not Bob.",
    ]


async def test_resume_raises_a_temporary_error() -> None:
    class Away(AgentCircuitOpenError):
        pass

    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    bot.turns = (bot.turns[0], Away("The circuit is open."))
    with pytest.raises(Away):
        await resume(bot, asked, decide(asked, True))


async def test_timeline_shows_a_resumed_step_once() -> None:
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await bot.begin()
    ended = await resume(bot, asked, decide(asked, True, "Not Bob."))
    at = range(len(asked.external_events) + len(ended.external_events))
    kept = [
        StoredEvent(position=n, source="afk", source_format="afk", seq=n, at_ms=n, event=event)
        for n, event in zip(at, (*asked.external_events, *ended.external_events), strict=True)
    ]
    entries = build_entries(kept)
    calls = [(one.name, one.call_id) for one in entries if one.kind is Kind.CALL]
    assert calls == [("pay", "c0"), ("pay", "c1")]
    assert [one.text for one in entries].count("Turn 0.") == 1
    assert [one.text for one in entries].count("Step 1") == 1
    assert not [one for one in entries if one.kind is Kind.PROBLEM]


async def test_resume_refuses_an_invalid_state() -> None:
    asked = await Bot(([pay("ann", 1)],)).begin()
    invalid: tuple[JsonObject, ...] = ({}, {**asked.native, "saved": {"step": 1}}, {**asked.native, "step": "one"})
    for native in invalid:
        with pytest.raises(InvalidInput, match="not a waiting AFK run"):
            await Bot(()).framework.resume(native, decide(asked, True))


def test_load_types_names_the_source_of_afk_if_missing() -> None:
    script = "from sayso.adapters.afk.classes import load_types; load_types()"
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 or IS_REAL
    assert "not on PyPI" in done.stderr or IS_REAL


@pytest.mark.skipif(not IS_REAL, reason="AFK's own checkout is not on the path (it is not on PyPI)")
async def test_real_afk_runner_suspends_and_resumes() -> None:
    """All tests of AFK use its own runner if it is installed."""
    from afk.core.runner import Runner as Real

    assert Runner is Real
    bot = Bot(([pay("ann", 1)],), options={})
    asked = await bot.begin()
    assert "paid 1 to ann" in text_of(await resume(bot, asked, decide(asked, True)))
