"""A run of an AFK agent stops before its calls with all it needs to go on, and goes on with what was decided."""

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
    """An AFK agent behind `Framework`, and everything it did."""

    turns: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    tools: list[Any] = field(default_factory=list)
    memory: Rows = field(default_factory=Rows)
    purse: Purse = field(default_factory=Purse)
    hooks: list[Hooks] = field(default_factory=list)

    @property
    def framework(self) -> Afk:
        """The agent as workers have it."""
        return Afk(self.build, lambda: self.memory)

    def build(self, hooks: Hooks) -> tuple[Any, Any]:
        """Make the runner and the agent."""
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


def decide(asked: FrameworkTurn, *said: Any, kept: Kept | None = None) -> CallExecutor:
    """Return a gate for the calls: True to run one, arguments to run it with, words to deny it, or its result."""
    calls, contexts = [], {}
    for index, (one, word) in enumerate(zip(asked.calls, said, strict=True)):
        args = word if isinstance(word, dict) else json.loads(one.args_json)
        call = BatchCall(
            call=OurCall(call_id=one.call_id, index=index, name=one.name, args=args), action=Action.ALLOW, reason=""
        )
        if isinstance(word, str):
            call = end_call(call, word)
        elif isinstance(word, OurResult):
            call = call.model_copy(update={"result": word})
        else:
            contexts[index] = CallContext("run", one.call_id, f"key{index}")
        calls.append(call)
    return CallExecutor(Batch(calls=tuple(calls), started_step=1), contexts, (kept or Kept()).keep)


async def resume(bot: Bot, asked: FrameworkTurn, gate: CallExecutor) -> FrameworkTurn | Done:
    """Go on as a worker does."""
    with use_executor(gate):
        return await bot.framework.resume(asked.native, gate)


def text_of(reached: FrameworkTurn | Done) -> str:
    assert isinstance(reached, Done)
    assert isinstance(reached.result, dict)
    return str(reached.result["text"])


async def test_a_run_stops_with_all_calls_of_its_turn_before_any_of_them() -> None:
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await bot.begin()
    assert [(one.call_id, one.name) for one in asked.calls] == [("c0", "pay"), ("c1", "pay")]
    assert (asked.text, bot.purse.paid) == ("Turn 0.", [])


async def test_it_goes_on_with_what_was_decided_on_each_call() -> None:
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1"), pay("cid", 3, "c2")],))
    asked = await bot.begin()
    reached = await resume(bot, asked, decide(asked, True, "Not Bob.", {"to": "cid", "amount": 9}))
    assert sorted(bot.purse.paid) == [("ann", 1), ("cid", 9)]
    assert "Not Bob." in text_of(reached)


async def test_calls_that_were_not_the_ones_decided_on_do_not_run() -> None:
    """A state may hold other calls than those that were asked about: only what was decided runs."""
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


async def test_the_next_turn_stops_again() -> None:
    bot = Bot(([pay("ann", 1)], [pay("bob", 2)]))
    first = await bot.begin()
    second = await resume(bot, first, decide(first, True))
    assert isinstance(second, FrameworkTurn)
    assert (first.native["step"], second.native["step"], bot.purse.paid) == (1, 2, [("ann", 1)])


async def test_a_run_goes_on_where_nothing_is_left_of_its_store() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    bot.memory.rows.clear()
    await resume(bot, asked, decide(asked, True))
    assert bot.purse.paid == [("ann", 1)]


async def test_the_same_answers_are_given_however_often_it_is_gone_on_with() -> None:
    """A call that ran has its result, and one that was denied is denied, whatever AFK saved meanwhile."""
    bot = Bot(([pay("ann", 1), pay("bob", 2, "c1")],))
    asked = await bot.begin()
    first = await resume(bot, asked, decide(asked, True, "No."))
    result = OurResult(call_id="c0", tool_name="pay", success=True, output="paid 1 to ann")
    second = await resume(bot, asked, decide(asked, result, "No."))
    assert bot.purse.paid == [("ann", 1)]
    assert text_of(first) == text_of(second)


async def test_calls_without_ids_each_run_once() -> None:
    bot = Bot(([pay("ann", 1, None), pay("ann", 1, None)],))
    asked = await bot.begin()
    await resume(bot, asked, decide(asked, True, True))
    assert bot.purse.paid == [("ann", 1), ("ann", 1)]


async def test_results_that_cannot_be_kept_stop_the_run() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    with pytest.raises(Conflict):
        await resume(bot, asked, decide(asked, True, kept=Kept(refuse=True)))
    assert not [key for _, key in bot.memory.rows if "post_tool_batch" in key]


async def test_waiting_is_not_charged_to_the_run() -> None:
    bot = Bot(([pay("ann", 1)],), options={"fail_safe": FailSafeConfig(max_wall_time_s=60)})
    asked = await bot.begin()
    saved: Any = asked.native["saved"]
    hours_ago = {**saved, "payload": {**saved["payload"], "started_at_s": saved["payload"]["started_at_s"] - 7200}}
    paused: Any = asked.native["paused_at_ms"]
    native = {**asked.native, "saved": hours_ago, "paused_at_ms": paused - 7_200_000}
    await resume(bot, FrameworkTurn(native, asked.calls), decide(asked, True))
    assert bot.purse.paid == [("ann", 1)]


async def test_time_that_the_run_itself_took_is_charged() -> None:
    bot = Bot(([pay("ann", 1)],), options={"fail_safe": FailSafeConfig(max_wall_time_s=60)})
    asked = await bot.begin()
    saved: Any = asked.native["saved"]
    late = {**saved, "payload": {**saved["payload"], "started_at_s": saved["payload"]["started_at_s"] - 7200}}
    ended = await resume(bot, FrameworkTurn({**asked.native, "saved": late}, asked.calls), decide(asked, True))
    assert isinstance(ended, Done)
    assert (ended.status, "max_wall_time_s" in str(ended.error), bot.purse.paid) == (RunStatus.FAILED, True, [])


def test_tickets_expire_later_by_the_time_that_was_waited() -> None:
    payload: Any = {"started_at_s": 10.0, "background_tools_pending": [{"ticket_id": "t", "created_at_s": 12.0}]}
    moved: Any = shift({"step": 1, "payload": payload}, 5.0)
    assert moved["payload"]["started_at_s"] == 15
    assert moved["payload"]["background_tools_pending"][0]["created_at_s"] == 17


async def test_a_tool_that_goes_on_in_the_background_keeps_its_ticket_and_resolves_later() -> None:
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


async def test_a_state_that_is_not_json_is_refused_with_its_key() -> None:
    bot = Bot(([pay("ann", float("nan"))],))
    with pytest.raises(InvalidJson, match=r"saved.*arguments\.amount"):
        await bot.framework.begin("Pay them.")


async def test_a_runner_that_saves_elsewhere_is_told_so() -> None:
    bot = Bot(([pay("ann", 1)],))
    elsewhere = Rows()

    def build(hooks: Hooks) -> tuple[Any, Any]:
        _, agent = bot.build(hooks)
        return Runner(memory_store=elsewhere, interaction_provider=hooks.provider), agent

    with pytest.raises(InvalidInput, match=r"memory_store=hooks\.memory"):
        await Afk(build, lambda: bot.memory).begin("Pay them.")


async def test_a_run_that_somebody_else_went_on_with_is_hindered() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    assert await bot.framework.find_fault(asked.native) is None
    _, agent = bot.build(Hooks(bot.memory))
    stranger = Runner(memory_store=bot.memory)
    await stranger.resume(agent, run_id=str(asked.native["run_id"]), thread_id=str(asked.native["thread_id"]))
    assert "another process has resumed it" in str(await bot.framework.find_fault(asked.native))
    assert bot.purse.paid == []


async def test_our_own_earlier_try_to_go_on_is_no_hindrance() -> None:
    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    await resume(bot, asked, decide(asked, True))
    assert await bot.framework.find_fault(asked.native) is None


@pytest.mark.parametrize("said", [True, "No."])
async def test_a_call_that_afks_own_rules_ask_about_is_put_to_sayso(said: Any) -> None:
    rule = Rule("tool_before_execute", PolicyDecision(action="request_approval", reason="Ask"))
    bot = Bot(([pay("ann", 1)],), options={"policy_engine": rule})
    asked = await bot.begin()
    await resume(bot, asked, decide(asked, said))
    assert bot.purse.paid == ([("ann", 1)] if said is True else [])


@pytest.mark.parametrize(("said", "paid"), [({"to": "bob", "amount": 3}, [("bob", 3)]), ("No.", [])])
async def test_a_value_that_afks_own_rules_ask_for_is_given_by_sayso(said: Any, paid: Any) -> None:
    rule = Rule(
        "tool_before_execute", PolicyDecision(action="request_user_input", request_payload={"target_arg": "to"})
    )
    bot = Bot(([pay("ann", 3)],), options={"policy_engine": rule})
    asked = await bot.begin()
    reached = await resume(bot, asked, decide(asked, said))
    assert bot.purse.paid == paid
    assert ("No." in text_of(reached)) is (said == "No.")


async def test_a_call_that_afks_own_rules_deny_stays_denied() -> None:
    class Denying(Rule):
        def evaluate(self, event: Any) -> Any:
            """Deny what Bob is paid."""
            denied = (event.tool_args or {}).get("to") == "bob"
            return SimpleNamespace(decision=self._decision if denied else PolicyDecision())

    rule = Denying("", PolicyDecision(action="deny", reason="Not Bob."))
    bot = Bot(([pay("bob", 2), pay("ann", 1, "c1")],), options={"policy_engine": rule})
    asked = await bot.begin()
    gate = decide(asked, True, True)
    await resume(bot, asked, gate)
    assert bot.purse.paid == [("ann", 1)]
    await gate.close()


async def test_what_is_no_tool_call_is_put_to_nobody_and_denied() -> None:
    rule = Rule("llm_before_execute", PolicyDecision(action="request_approval"))
    bot = Bot((), options={"policy_engine": rule})
    ended = await bot.framework.begin("Pay them.")
    assert isinstance(ended, Done)
    assert (ended.status, ended.error) == (RunStatus.FAILED, "LLM call approval denied")


async def test_start_raises_when_afk_fails_the_run_before_it_asks() -> None:
    rule = Rule("llm_before_execute", PolicyDecision(action="request_approval"))
    bot = Bot((), options={"policy_engine": rule})
    agent = gate(bot.build, name="bot", memory=lambda: bot.memory)
    with pytest.raises(SaysoError, match="LLM call approval denied"):
        await start(agent, "Pay them.", InProcessDesk().async_client())


async def test_a_run_within_the_run_is_denied_for_afk_cannot_suspend_it() -> None:
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


async def test_a_tool_cannot_be_called_past_the_gate() -> None:
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
def test_an_agent_of_which_something_would_run_unasked_is_refused(change: Any, words: str) -> None:
    bot = Bot(())

    def build(hooks: Hooks) -> tuple[Any, Any]:
        runner, agent = bot.build(hooks)
        change(agent, bot.purse)
        return runner, agent

    with pytest.raises(InvalidInput, match=words):
        gate(build, name="bot", memory=lambda: bot.memory)


def test_the_agents_tools_are_known_by_their_own_words() -> None:
    agent = gate(Bot(()).build, name="bot", memory=Rows, idempotent={"pay"})
    (pay_,) = agent.tools
    assert (pay_.name, pay_.definition.description, pay_.idempotent) == ("pay", "Pay somebody.", True)
    assert agent.manifest().origin.framework == "afk"


async def test_the_part_before_the_pause_is_told_with_the_question() -> None:
    asked = await Bot(([pay("ann", 1)],)).begin()
    kinds = [one["type"] for one in asked.external_events]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_paused")


@pytest.mark.parametrize(
    ("policy", "status"), [("fail_run", RunStatus.FAILED), ("retry_then_degrade", RunStatus.DEGRADED)]
)
async def test_go_on_ends_the_run_as_afk_does_and_leaves_no_doubt(policy: str, status: RunStatus) -> None:
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


async def test_go_on_raises_an_error_that_may_pass() -> None:
    class Away(AgentCircuitOpenError):
        pass

    bot = Bot(([pay("ann", 1)],))
    asked = await bot.begin()
    bot.turns = (bot.turns[0], Away("The circuit is open."))
    with pytest.raises(Away):
        await resume(bot, asked, decide(asked, True))


async def test_denied_call_and_resumed_step_are_on_the_timeline_once() -> None:
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


async def test_a_state_that_is_no_runs_is_refused() -> None:
    asked = await Bot(([pay("ann", 1)],)).begin()
    for native in ({}, {**asked.native, "saved": {"step": 1}}, {**asked.native, "step": "one"}):
        with pytest.raises(InvalidInput, match="not a waiting AFK run"):
            await Bot(()).framework.resume(native, decide(asked, True))


def test_without_afk_it_is_said_where_it_comes_from() -> None:
    script = "from sayso.adapters.afk.classes import load_types; load_types()"
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 or IS_REAL
    assert "not on PyPI" in done.stderr or IS_REAL


@pytest.mark.skipif(not IS_REAL, reason="AFK's own checkout is not on the path (it is on no package index)")
async def test_afks_own_runner_suspends_and_goes_on() -> None:
    """The other tests of this file and of the desks use it, too, where it is there."""
    from afk.core.runner import Runner as Real

    assert Runner is Real
    bot = Bot(([pay("ann", 1)],), options={})
    asked = await bot.begin()
    assert "paid 1 to ann" in text_of(await resume(bot, asked, decide(asked, True)))
