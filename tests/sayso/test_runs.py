"""A run is judged, asked about, executed and told exactly as the lifecycle of a tool call says."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sayso.agents import Agent, Budgets
from sayso.batches import Resumption
from sayso.canonical import canonical_json, parse_json
from sayso.errors import ModelError
from sayso.events import Event, TrailHead, append_events
from sayso.models import ChatMessage, ModelTurn
from sayso.requests import Answer, Ask, ItemKind
from sayso.runs import End, Pause, RunState, drive, start_state
from sayso.suspensions import RunStatus
from sayso.terms import Fallback, FallbackAction
from sayso.tool_calls import ToolDefinition
from sayso.tools import CallContext, tool
from tests.sayso.rulings import policy, rule
from tests.sayso.runners import (
    DONE,
    POLICY,
    Ledger,
    Ran,
    approve,
    deny,
    fail,
    give,
    kinds,
    make_agent,
    reload,
    time_out,
    told,
    turn,
)

START = start_state("run_1", "support", "Refund A-1", {"tier": "gold"}, "thread_1")

CALLS = {
    "allow": ("look", {"order": "A"}),
    "deny": ("drop", {"order": "A"}),
    "approve": ("refund", {"order": "A", "amount": 5}),
    "edit": ("refund", {"order": "A", "amount": 7}),
    "value": ("pay", {"order": "A"}),
    "timeout": ("refund", {"order": "A", "amount": 9}),
}
ANSWERS: dict[str, Callable[[Ask], Resumption]] = {
    "approve": approve,
    "edit": lambda ask: approve(ask, amount=1),
    "value": lambda ask: give(ask, "1234"),
    "timeout": time_out,
}
ACTIONS = {"allow": "allow", "deny": "deny", "value": "request_user_input"}
RUNS = {
    "allow": ["look", {"order": "A"}],
    "approve": ["refund", {"order": "A", "amount": 5.0}],
    "edit": ["refund", {"order": "A", "amount": 1.0}],
    "value": ["pay", {"order": "A", "code": "1234"}],
}
ENDS = {"continue": RunStatus.COMPLETED, "degrade": RunStatus.DEGRADED, "fail": RunStatus.FAILED}


class Walk:
    """One batch driven to its end, with every answer given in another process as it were."""

    def __init__(self, agent: Agent, ran: Ran) -> None:
        self.agent = agent
        self.ran = ran
        self.journal = Ledger("run_1")
        self.pauses: list[Pause] = []
        self.events: list[Event] = []

    async def go(self, mix: tuple[str, ...]) -> End:
        rest = await drive(self.agent, START, policy=POLICY, journal=self.journal)
        while isinstance(rest, Pause):
            assert self.ran == [], "nothing of a batch runs while any of it waits"
            self.pauses.append(rest)
            self.journal.events += rest.events
            outcomes = {ask.index: ANSWERS[mix[ask.index]](ask) for ask in rest.asks}
            rest = await drive(self.agent, reload(rest.state), policy=POLICY, journal=self.journal, outcomes=outcomes)
        self.events = [*self.journal.events, *rest.events]
        return rest


def mixes() -> list[tuple[str, ...]]:
    """Every batch of one or two calls in every order, and every mix of three or four."""
    ordered = [mix for size in (1, 2) for mix in itertools.product(CALLS, repeat=size)]
    return ordered + [mix for size in (3, 4) for mix in itertools.combinations_with_replacement(CALLS, size)]


def sort(calls: list[Any]) -> list[bytes]:
    return sorted(map(canonical_json, calls))


@pytest.mark.parametrize("denial_policy", ["continue", "degrade", "fail"])
async def test_every_mix_of_calls_goes_as_the_lifecycle_says(denial_policy: str) -> None:
    for mix in mixes():
        ran: Ran = []
        agent = make_agent(ran, turn(*(CALLS[kind] for kind in mix)), approval_denial_policy=denial_policy)
        walk = Walk(agent, ran)
        end = await walk.go(mix)

        denied_by_rules, asked = "deny" in mix, [place for place, kind in enumerate(mix) if kind in ANSWERS]
        stopped = denial_policy != "continue" and (denied_by_rules or "timeout" in mix)
        nobody_asked = not asked or (denial_policy != "continue" and denied_by_rules)
        runs = [] if stopped else [RUNS[kind] for kind in mix if kind in RUNS]
        succeeds = [kind in RUNS and not stopped for kind in mix]
        expected = ["llm_completed", "tool_batch_started", *["policy_decision"] * len(mix)]
        expected += [] if nobody_asked else ["warning"] * mix.count("timeout")
        expected += [*["tool_completed"] * len(mix), "tool_batch_completed", *([] if stopped else ["llm_completed"])]

        assert end.status is (ENDS[denial_policy] if stopped else RunStatus.COMPLETED), mix
        assert [[ask.index for ask in pause.asks] for pause in walk.pauses] == ([] if nobody_asked else [asked]), mix
        assert sort([[name, args] for name, args, _ in ran]) == sort(runs), mix
        assert kinds(walk.events) == expected, mix
        assert told(walk.events, "policy_decision", "index", "action") == [
            (place, ACTIONS.get(kind, "request_approval")) for place, kind in enumerate(mix)
        ], mix
        assert told(walk.events, "tool_completed", "index", "tool_call_id", "success") == [
            (place, f"c{place}", success) for place, success in enumerate(succeeds)
        ], mix
        assert told(walk.events, "tool_batch_completed", "tool_call_count", "failure_count") == [
            (len(mix), succeeds.count(False))
        ], mix


async def test_the_events_say_what_happened_and_why() -> None:
    ran: Ran = []
    mix = ("allow", "deny", "edit")
    walk = Walk(make_agent(ran, turn(*(CALLS[kind] for kind in mix), text="Let me see.")), ran)
    end = await walk.go(mix)
    asked, started, *decisions = walk.pauses[0].events
    assert asked.data == {"text": "Let me see.", "tool_call_count": 3, "finish_reason": "tool_calls", "usage": {}}
    assert started.data == {"tool_call_count": 3, "step": 1, "tool_names": ["look", "drop", "refund"]}
    assert decisions[1].data == {
        "tool_name": "drop",
        "action": "deny",
        "reason": "Rule drops says deny.",
        "call_id": "c1",
        "index": 1,
        "policy_id": "drops",
        "matched_rules": ["drops"],
    }
    latencies = told(walk.events, "tool_completed", "latency_ms")
    assert [isinstance(latency, float) for latency in latencies] == [True, False, True]
    assert latencies[1] is None
    assert told(walk.events, "tool_completed", "tool_name", "output", "error") == [
        ("look", "A is open", None),
        ("drop", None, "Denied by policy"),
        ("refund", {"refunded": 1.0}, None),
    ]
    assert told(walk.events, "tool_batch_completed", "latency_ms")[0] >= 0
    assert end.result == {"text": "done"}
    assert end.error is None


async def test_the_model_is_told_every_result_in_its_own_order() -> None:
    ran: Ran = []
    mix = ("timeout", "allow", "deny")
    end = await Walk(make_agent(ran, turn(*(CALLS[kind] for kind in mix))), ran).go(mix)
    user, assistant, *results, last = end.state.messages
    assert user == {"role": "user", "content": "Refund A-1"}
    assert [call["id"] for call in assistant["tool_calls"]] == ["c0", "c1", "c2"]  # type: ignore[call-overload,index,union-attr]
    assert [message["tool_call_id"] for message in results] == ["c0", "c1", "c2"]
    assert [parse_json(str(message["content"])) for message in results] == [
        {"success": False, "error": "Nobody decided in time.", "tool_call_id": "c0"},
        {"success": True, "output": "A is open", "tool_call_id": "c1"},
        {"success": False, "error": "Denied by policy", "tool_call_id": "c2"},
    ]
    assert last == {"role": "assistant", "content": "done"}


async def test_the_instructions_come_first_and_are_not_part_of_the_state() -> None:
    heard: list[list[ChatMessage]] = []

    class Listening:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            heard.append(messages)
            return DONE

    end = await drive(make_agent([], model=Listening()), START, policy=POLICY, journal=Ledger("run_1"))
    assert heard[0][0] == {"role": "system", "content": "Be kind."}
    assert end.state.messages[0] == {"role": "user", "content": "Refund A-1"}


# Asking


async def pause_for(*calls: tuple[str, Any], rules: Any = POLICY, **changes: Any) -> Pause:
    rest = await drive(make_agent([], turn(*calls), **changes), START, policy=rules, journal=Ledger("run_1"))
    assert isinstance(rest, Pause)
    return rest


async def test_an_approval_carries_all_that_a_reviewer_needs() -> None:
    asking = rule(
        "refunds",
        "request_approval",
        tool_name="refund",
        reason="money leaves",
        request_payload={"title": "Refund", "prompt": "Is it due?", "metadata": {"team": "pay"}, "allow_edit": False},
        terms={"timeout_s": 60, "reviewers": ["ada"]},
    )
    rules = policy(asking)
    pause = await pause_for(CALLS["approve"], rules=rules)
    (ask,) = pause.asks
    assert (ask.kind, ask.call_id, ask.index, ask.target_arg) == (ItemKind.APPROVAL, "c0", 0, None)
    assert (ask.tool.name, ask.tool.args, ask.tool.idempotent) == ("refund", {"order": "A", "amount": 5}, False)
    assert (ask.prompt.title, ask.prompt.body, ask.prompt.reason) == ("Refund", "Is it due?", "money leaves")
    assert ask.prompt.metadata == {"team": "pay"}
    assert ask.allowed == (Answer.APPROVE, Answer.DENY)
    assert (ask.terms.timeout_s, ask.terms.reviewers) == (60, ("ada",))
    assert (ask.rule_id, ask.rule_version) == ("refunds", rules.version)


async def test_an_input_is_asked_with_the_schema_of_its_argument_unless_the_rule_has_one() -> None:
    (ask,) = (await pause_for(CALLS["value"])).asks
    assert (ask.kind, ask.target_arg, ask.allowed) == (ItemKind.INPUT, "code", (Answer.VALUE, Answer.DENY))
    assert ask.response_schema == {"type": "string", "pattern": "^[0-9]{4}$"}
    payload = {"target_arg": "code", "response_schema": {"type": "string", "maxLength": 4}}
    own = policy(rule("codes", "request_user_input", tool_name="pay", request_payload=payload))
    (ask,) = (await pause_for(CALLS["value"], rules=own)).asks
    assert ask.response_schema == {"type": "string", "maxLength": 4}
    payload = {"target_arg": "code", "choices": ["1111", "2222"]}
    chosen = policy(rule("codes", "request_user_input", tool_name="pay", request_payload=payload))
    (ask,) = (await pause_for(CALLS["value"], rules=chosen)).asks
    assert ask.choices == ("1111", "2222")


async def test_a_rules_time_to_answer_wins_over_the_agents() -> None:
    silent = policy(rule("refunds", "request_approval", tool_name="refund"))
    for rules, timeout_s in ((POLICY, 60), (silent, 7)):
        (ask,) = (await pause_for(CALLS["approve"], rules=rules, approval_timeout_s=7)).asks
        assert ask.terms.timeout_s == timeout_s
    (ask,) = (await pause_for(CALLS["approve"], rules=silent)).asks
    assert ask.terms.timeout_s == 300


async def test_a_call_that_cannot_be_judged_is_asked_with_the_error_shown() -> None:
    unsure = policy(rule("big", "allow", tool_name="look", when="args.amount > 100"))
    pause = await pause_for(CALLS["allow"], rules=unsure)
    assert "rule big" in str(pause.asks[0].prompt.metadata["judging_error"])
    assert "rule big" in told(pause.events, "policy_decision", "error")[0]
    assert "rule big" in told(pause.events, "warning", "message")[0]


async def test_the_agents_context_wins_over_what_the_run_brings_along() -> None:
    rules = policy(rule("gold", tool_name="look", context_equals={"tier": "gold"}))
    for context, denied in (({}, True), ({"tier": "plain"}, False)):
        journal = Ledger("run_1")
        await drive(make_agent([], turn(CALLS["allow"]), context=context), START, policy=rules, journal=journal)
        assert told(journal.events, "policy_decision", "action") == ["deny" if denied else "allow"]


# Calls that cannot run


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("refund", "{"), "cannot be read"),
        (("refund", "[1]"), "not a JSON object"),
        (("refund", '{"order": "A", "order": "B", "amount": 1}'), "appears twice"),
        (("refund", '{"order": "A", "amount": NaN}'), "NaN is not JSON"),
        (("refund", '{"order": "\\ud800", "amount": 1}'), "surrogate"),
        (("refund", '{"order": "A", "amount": 99999999999999999999}'), "2^53"),
        (("refund", '{"order": ' + "[" * 40 + "]" * 40 + "}"), "nested deeper"),
        (("refund", {"order": "A"}), "amount: Field required"),
        (("refund", {"order": "A", "amount": "5"}), "amount: Input should be a valid number"),
        (("refund", {"order": "A", "amount": -1}), "greater than 0"),
        (("refund", {"order": "A", "amount": 1, "to": "me"}), "to: Extra inputs"),
        (("refund", ""), "order: Field required"),
        (("pay", {"order": 1}), "order: Input should be a valid string"),
        (("pay", {"code": "1234"}), "order: Field required"),
        (("nothing", {}), "no tool named 'nothing'"),
        (("", {}), "no tool named"),
        (("n" * 500, {}), "no tool named"),
    ],
)
async def test_a_call_that_cannot_run_is_refused_before_anybody_is_asked(call: tuple[str, Any], words: str) -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(call), approval_denial_policy="fail")
    journal = Ledger("run_1")
    end = await drive(agent, START, policy=POLICY, journal=journal)
    assert isinstance(end, End)
    assert end.status is RunStatus.COMPLETED, "a mistake of the model is no denial"
    assert told(journal.events, "policy_decision", "action") == ["deny"]
    assert words in told(journal.events, "policy_decision", "reason")[0]
    assert words in told(journal.events, "tool_completed", "error")[0]
    assert ran == []
    append_events(TrailHead(), tuple(journal.events), 0)


async def test_a_call_that_the_rules_deny_is_denied_whatever_its_arguments() -> None:
    agent = make_agent([], turn(("drop", {})), approval_denial_policy="degrade")
    end = await drive(agent, START, policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(end, End)
    assert (end.status, told(end.events, "tool_completed", "error")) == (RunStatus.DEGRADED, ["Denied by policy"])


async def test_a_rule_that_asks_for_an_argument_the_tool_does_not_take_runs_nothing() -> None:
    ran: Ran = []
    rules = policy(rule("codes", "request_user_input", tool_name="look", request_payload={"target_arg": "code"}))
    journal = Ledger("run_1")
    await drive(make_agent(ran, turn(CALLS["allow"])), START, policy=rules, journal=journal)
    assert "'code', which look does not take" in told(journal.events, "tool_completed", "error")[0]
    assert ran == []


async def test_a_call_without_arguments_may_come_as_an_empty_text() -> None:
    rang: list[int] = []

    @tool
    def ring() -> None:
        """Ring."""
        rang.append(1)

    await drive(make_agent([], turn(("ring", " ")), tools=(ring,)), START, policy=policy(), journal=Ledger("run_1"))
    assert rang == [1]


# Answers


async def resume(
    pause: Pause, agent: Agent, outcomes: dict[int, Resumption], rules: Any = POLICY
) -> tuple[End, Ledger]:
    journal = Ledger("run_1")
    end = await drive(agent, reload(pause.state), policy=rules, journal=journal, outcomes=outcomes)
    assert isinstance(end, End)
    return end, journal


async def answer(call: str, reply: Callable[[Ask], Resumption], rules: Any = POLICY, **changes: Any) -> Any:
    """Ask about one call, answer it, and return what ran, what its result was, and how the run ended."""
    ran: Ran = []
    agent = make_agent(ran, turn(CALLS[call]), **changes)
    pause = await drive(agent, START, policy=rules, journal=Ledger("run_1"))
    assert isinstance(pause, Pause)
    end, journal = await resume(pause, agent, {0: reply(pause.asks[0])}, rules)
    (error,) = told([*journal.events, *end.events], "tool_completed", "error")
    return [args for _, args, _ in ran], error, end


async def test_a_denial_is_told_in_the_reviewers_words_or_in_the_lifecycles() -> None:
    assert (await answer("approve", lambda ask: deny(ask, "too much")))[1] == "too much"
    assert (await answer("approve", deny))[1] == "Denied by reviewer"


async def test_a_denial_by_a_rule_is_told_with_its_reason_where_it_has_one() -> None:
    for reason, words in ((None, "Denied by policy"), ("never drop", "Denied by policy: never drop")):
        journal = Ledger("run_1")
        rules = policy(rule("drops", tool_name="drop", reason=reason))
        await drive(make_agent([], turn(CALLS["deny"])), START, policy=rules, journal=journal)
        assert told(journal.events, "tool_completed", "error") == [words]


async def test_a_run_that_ends_by_a_denial_says_so() -> None:
    _, _, degraded = await answer("approve", deny, approval_denial_policy="degrade")
    assert degraded.error == "refund was denied, and the agent's approval_denial_policy is degrade."
    assert degraded.result["reason"] == degraded.error
    assert (degraded.result["completed"], degraded.result["missing"]) == ([], ["refund"])
    _, _, failed = await answer("approve", deny, approval_denial_policy="fail")
    assert (failed.status, failed.result) == (RunStatus.FAILED, None)
    assert failed.error == "refund was denied, and the agent's approval_denial_policy is fail."


async def test_an_outcome_that_fails_ends_the_run_and_every_call_is_still_told() -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(CALLS["allow"], CALLS["approve"]))
    pause = await drive(agent, START, policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, Pause)
    end, journal = await resume(pause, agent, {1: fail(pause.asks[0])})
    assert (end.status, end.error, ran) == (RunStatus.FAILED, "refund: Nobody answered.", [])
    assert journal.steps == []
    assert told(end.events, "tool_completed", "error") == ["Skipped: refund: Nobody answered.", "Nobody answered."]


async def test_an_item_without_an_outcome_is_denied() -> None:
    agent = make_agent([], turn(CALLS["approve"]))
    pause = await drive(agent, START, policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, Pause)
    _, journal = await resume(pause, agent, {})
    assert told(journal.events, "tool_completed", "success", "error") == [
        (False, "Denied: no decision came for this call.")
    ]


async def test_final_arguments_are_checked_once_more_against_the_tool_and_the_rules() -> None:
    ran, error, end = await answer("edit", lambda ask: approve(ask, amount=-1))
    assert (ran, end.status) == ([], RunStatus.COMPLETED)
    assert error.startswith("The arguments do not fit refund: amount")
    ran, error, _ = await answer("value", lambda ask: give(ask, "12345"))
    assert ran == []
    assert error.startswith("The arguments do not fit pay: code")
    capped = policy(*POLICY.rules, rule("cap", tool_name="refund", when="args.amount > 100", priority=900))
    ran, error, end = await answer(
        "edit", lambda ask: approve(ask, amount=101), capped, approval_denial_policy="degrade"
    )
    assert (ran, error, end.status) == ([], "Denied by policy", RunStatus.DEGRADED)


async def test_a_tool_that_was_changed_or_taken_away_while_its_call_waited_does_not_run() -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(CALLS["approve"], CALLS["allow"]))
    pause = await drive(agent, START, policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, Pause)

    @tool(name="refund")
    def changed(order: str, amount: float) -> None:
        """Refund an order twice."""
        ran.append(("refund", {}, CallContext("", "", "")))

    _, journal = await resume(pause, make_agent(ran, tools=(changed,)), {0: approve(pause.asks[0])})
    assert ran == []
    assert told(journal.events, "tool_completed", "error") == [
        "The tool refund is no longer the one that was approved. Ask again.",
        "The agent no longer has the tool look.",
    ]


# Headless


HEADLESS_RULES = policy(
    rule("codes", "request_user_input", tool_name="pay", request_payload={"target_arg": "code"}),
    rule("refunds", "request_approval", tool_name="refund", terms={"unattended_approval": True}),
    rule("crashes", "request_approval", tool_name="crash"),
)


@pytest.mark.parametrize(
    ("approval", "given", "runs", "status"),
    [
        (Fallback(), Fallback(), ["look"], RunStatus.COMPLETED),
        (Fallback(action=FallbackAction.APPROVE), Fallback(), ["look", "refund"], RunStatus.COMPLETED),
        (Fallback(), Fallback(action=FallbackAction.VALUE, value="4321"), ["look", "pay"], RunStatus.COMPLETED),
        (Fallback(), Fallback(action=FallbackAction.VALUE, value="no code"), ["look"], RunStatus.COMPLETED),
        (Fallback(action=FallbackAction.FAIL), Fallback(), [], RunStatus.FAILED),
        (Fallback(), Fallback(action=FallbackAction.FAIL), [], RunStatus.FAILED),
    ],
)
async def test_a_headless_agent_is_never_put_to_anybody(
    approval: Fallback, given: Fallback, runs: list[str], status: RunStatus
) -> None:
    ran: Ran = []
    asked = turn(CALLS["allow"], CALLS["approve"], CALLS["value"], ("crash", {"order": "A"}))
    agent = make_agent(ran, asked, interaction="headless", approval_fallback=approval, input_fallback=given)
    journal = Ledger("run_1")
    end = await drive(agent, START, policy=HEADLESS_RULES, journal=journal)
    assert isinstance(end, End)
    assert (end.status, sorted(name for name, _, _ in ran)) == (status, sorted(runs))
    events = [*journal.events, *end.events]
    assert kinds(events).count("tool_completed") == 4
    assert not {"run_paused", "run_resumed"} & set(kinds(events))
    assert all(step != "redeem" or state for step, _, state in journal.steps), "its batch is saved before it runs"


# Budgets


@pytest.mark.parametrize(
    ("budgets", "name"),
    [
        (Budgets(max_steps=3), "max_steps"),
        (Budgets(max_tool_calls=3), "max_tool_calls"),
        (Budgets(max_wall_time_s=0), "max_wall_time_s"),
        (Budgets(max_transcript_bytes=100), "max_transcript_bytes"),
    ],
)
async def test_a_budget_ends_a_run_that_would_go_on_for_ever_with_what_it_has(budgets: Budgets, name: str) -> None:
    class Endless:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            return turn(CALLS["allow"], ("drop", {"order": "B"}), text="Still looking.")

    journal = Ledger("run_1")
    end = await drive(make_agent([], model=Endless(), budgets=budgets), START, policy=POLICY, journal=journal)
    assert isinstance(end, End)
    assert end.status is RunStatus.DEGRADED
    assert isinstance(end.result, dict)
    assert end.result["reason"] == end.error
    assert name in str(end.error)
    assert end.events[-1].type == "warning"
    assert (end.events[-1].data["budget"], end.events[-1].data["message"]) == (name, end.error)
    steps = end.result["steps"]
    assert end.result["completed"] == ["look"] * (len(end.state.executions) // 2)
    assert steps == 0 or end.result["text"] == "Still looking."
    assert name != "max_steps" or steps == 3
    if name == "max_tool_calls":
        assert end.result["missing"] == ["drop", "look", "drop"]
        assert "tool_batch_started" not in kinds(end.events), "a batch beyond the budget is not begun"


async def test_a_model_that_never_answers_is_not_waited_for_beyond_the_budget() -> None:
    class Silent:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            await asyncio.Event().wait()
            return DONE

    agent = make_agent([], model=Silent(), budgets=Budgets(max_wall_time_s=0.01))
    end = await drive(agent, START, policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(end, End)
    assert (end.status, "max_wall_time_s" in str(end.error)) == (RunStatus.DEGRADED, True)


async def test_time_spent_is_carried_over_a_pause_and_waiting_is_not_counted() -> None:
    agent = make_agent([], turn(CALLS["approve"]), budgets=Budgets(max_wall_time_s=1000))
    spent = START.model_copy(update={"spent_ms": 999_000})
    pause = await drive(agent, spent, policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(pause, Pause)
    assert 999_000 < pause.state.spent_ms < 1_000_000
    late = pause.state.model_copy(update={"spent_ms": 1_000_001})
    end = await drive(agent, late, policy=POLICY, journal=Ledger("run_1"), outcomes={0: approve(pause.asks[0])})
    assert isinstance(end, End)
    assert end.status is RunStatus.DEGRADED
    assert [result.success for result in end.state.executions] == [True], "what was approved is done first"


# What goes wrong


async def test_a_model_that_fails_fails_the_run() -> None:
    class Broken:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            raise ModelError("The model endpoint answered 500.")

    end = await drive(make_agent([], model=Broken()), START, policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(end, End)
    assert (end.status, end.error) == (RunStatus.FAILED, "The model endpoint answered 500.")


async def test_a_tool_that_raises_is_a_failed_call_and_the_run_goes_on() -> None:
    journal = Ledger("run_1")
    end = await drive(make_agent([], turn(("crash", {"order": "A"}))), START, policy=POLICY, journal=journal)
    assert isinstance(end, End)
    assert end.status is RunStatus.COMPLETED
    assert told(journal.events, "tool_completed", "success", "error") == [(False, "RuntimeError: no A")]


async def test_an_answer_that_was_cut_off_is_warned_of() -> None:
    cut = ModelTurn(text="It beg", finish_reason="length")
    end = await drive(make_agent([], cut), START, policy=POLICY, journal=Ledger("run_1"))
    assert kinds(end.events) == ["llm_completed", "warning"]
    assert "length" in end.events[1].data["message"]


@pytest.mark.parametrize("output", ["x" * 300_000, ["é" * 1000] * 200, list(range(30_000)), "deep"])
async def test_an_output_too_large_to_be_kept_is_cut_with_a_warning(output: Any) -> None:
    if output == "deep":
        for _ in range(40):
            output = [output]

    @tool
    def dump() -> Any:
        """Dump."""
        return output

    journal = Ledger("run_1")
    agent = make_agent([], turn(("dump", {})), tools=(dump,))
    end = await drive(agent, START, policy=policy(), journal=journal)
    assert isinstance(end, End)
    (kept,) = told(journal.events, "tool_completed", "output")
    assert len(kept.encode()) < 256 * 1024 + 100
    assert kept.endswith("bytes in all]")
    assert told(journal.events, "warning", "tool_name") == ["dump"]
    append_events(TrailHead(), tuple(journal.events), 0)
    assert reload(end.state) == end.state


async def test_calls_of_one_batch_run_together_but_not_more_than_sixteen() -> None:
    at_once: list[int] = [0]
    most: list[int] = [0]

    @tool
    async def meet() -> None:
        """Wait for the others."""
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        for _ in range(5):
            await asyncio.sleep(0)
        at_once[0] -= 1

    agent = make_agent([], turn(*[("meet", {})] * 40), tools=(meet,))
    await drive(agent, START, policy=policy(), journal=Ledger("run_1"))
    assert most == [16]


# Any batch


ODD = {
    **CALLS,
    "unknown": ("nothing", {}),
    "unreadable": ("look", "{"),
    "unfit": ("refund", {"order": 1}),
    "raising": ("crash", {"order": "A"}),
}
REPLIES = [approve, deny, time_out, fail, lambda ask: approve(ask, amount=0), lambda ask: give(ask, "0000")]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    mix=st.lists(st.sampled_from(sorted(ODD)), min_size=1, max_size=6),
    replies=st.lists(st.sampled_from(REPLIES), min_size=6, max_size=6),
    denial_policy=st.sampled_from(["continue", "degrade", "fail"]),
    headless=st.booleans(),
)
async def test_any_batch_tells_of_every_call_once_and_runs_only_what_it_may(
    mix: list[str], replies: list[Callable[[Ask], Resumption]], denial_policy: str, headless: bool
) -> None:
    ran: Ran = []
    agent = make_agent(
        ran,
        turn(*(ODD[kind] for kind in mix)),
        approval_denial_policy=denial_policy,
        interaction="headless" if headless else "desk",
    )
    journal = Ledger("run_1")
    allowed = {place for place, kind in enumerate(mix) if kind in ("allow", "raising")}
    state: RunState = START
    outcomes: dict[int, Resumption] = {}
    rest = await drive(agent, state, policy=POLICY, journal=journal)
    if isinstance(rest, Pause):
        assert not ran
        assert not headless
        outcomes = {ask.index: replies[ask.index](ask) for ask in rest.asks}
        allowed |= {index for index, told_ in outcomes.items() if told_.outcome.may_run}
        journal.events += rest.events
        rest = await drive(agent, reload(rest.state), policy=POLICY, journal=journal, outcomes=outcomes)
    assert isinstance(rest, End)
    events = [*journal.events, *rest.events]
    assert told(events, "policy_decision", "index") == list(range(len(mix)))
    assert told(events, "tool_completed", "index") == list(range(len(mix)))
    assert len(rest.state.executions) == len(mix)
    assert {int(call.call_id[1:]) for _, _, call in ran} <= allowed
    assert len(ran) == len({call.call_id for _, _, call in ran}), "no call runs twice"
    succeeded = {index for index, success in told(events, "tool_completed", "index", "success") if success}
    assert succeeded <= {int(call.call_id[1:]) for _, _, call in ran}
    assert rest.state.batch is None
