"""The run loop follows the lifecycle of tool calls: judging, asking, executing and recording."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sayso.core.canonical_json import parse_json
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.tools import ToolDefinition
from sayso.runner.batches import Resumption
from sayso.runner.loop import drive
from sayso.runner.models import ChatMessage, ModelTurn
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState
from tests.sayso.runners import (
    DONE,
    POLICY,
    Ledger,
    Ran,
    approve,
    deny,
    fail,
    fields_of,
    give,
    kinds,
    make_agent,
    reload,
    time_out,
    turn,
)
from tests.sayso.walks import ACTIONS, ANSWERS, CALLS, ENDS, RUNS, START, Walk, mixes, sort


@pytest.mark.parametrize("denial_policy", ["continue", "degrade", "fail"])
async def test_every_mix_of_calls_follows_the_lifecycle(denial_policy: str) -> None:
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
        assert [[ask.index for ask in pause.drafts] for pause in walk.pauses] == ([] if nobody_asked else [asked]), mix
        assert sort([[name, args] for name, args, _ in ran]) == sort(runs), mix
        assert kinds(walk.events) == expected, mix
        assert fields_of(walk.events, "policy_decision", "index", "action") == [
            (place, ACTIONS.get(kind, "request_approval")) for place, kind in enumerate(mix)
        ], mix
        assert fields_of(walk.events, "tool_completed", "index", "tool_call_id", "success") == [
            (place, f"c{place}", success) for place, success in enumerate(succeeds)
        ], mix
        assert fields_of(walk.events, "tool_batch_completed", "tool_call_count", "failure_count") == [
            (len(mix), succeeds.count(False))
        ], mix


async def test_events_have_all_facts() -> None:
    ran: Ran = []
    mix = ("allow", "deny", "edit")
    walk = Walk(make_agent(ran, turn(*(CALLS[kind] for kind in mix), text="Let me see.")), ran)
    end = await walk.go(mix)
    asked, started, *decisions = walk.pauses[0].events
    assert asked.data == {"text": "Let me see.", "tool_call_count": 3, "finish_reason": "tool_calls", "usage": {}}
    assert started.data == {
        "tool_call_count": 3,
        "step": 1,
        "tool_names": ["look", "drop", "refund"],
        "progress": {"tools": [], "usage": None},
    }
    assert decisions[1].data == {
        "tool_name": "drop",
        "action": "deny",
        "reason": "Rule drops says deny.",
        "call_id": "c1",
        "index": 1,
        "subagent": "",
        "policy_id": "drops",
        "matched_rules": ["drops"],
        "rule_version": POLICY.version,
        "args": {"order": "A"},
    }
    latencies = fields_of(walk.events, "tool_completed", "latency_ms")
    assert [isinstance(latency, float) for latency in latencies] == [True, False, True]
    assert latencies[1] is None
    assert fields_of(walk.events, "tool_completed", "tool_name", "output", "error") == [
        ("look", "A is open", None),
        ("drop", None, "Denied by policy"),
        ("refund", {"refunded": 1.0}, None),
    ]
    assert fields_of(walk.events, "tool_batch_completed", "latency_ms")[0] >= 0
    assert end.result == {"text": "done"}
    assert end.error is None


async def test_results_reach_the_model_in_its_order() -> None:
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


async def test_instructions_come_first_and_are_not_saved() -> None:
    heard: list[list[ChatMessage]] = []

    class Listening:
        async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
            heard.append(messages)
            return DONE

    end = await drive(ModelRun(make_agent([], model=Listening()), START), policy=POLICY, journal=Ledger("run_1"))
    assert heard[0][0] == {"role": "system", "content": "Be kind."}
    assert end.state.messages[0] == {"role": "user", "content": "Refund A-1"}


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
async def test_any_batch_reports_each_call_once_and_runs_allowed_ones(
    mix: list[str], replies: list[Callable[[ItemDraft], Resumption]], denial_policy: str, headless: bool
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
    rest = await drive(ModelRun(agent, state), policy=POLICY, journal=journal)
    if isinstance(rest, RunSuspended):
        assert not ran
        assert not headless
        outcomes = {ask.index: replies[ask.index](ask) for ask in rest.drafts}
        allowed |= {index for index, told_ in outcomes.items() if told_.outcome.may_run}
        journal.events += rest.events
        rest = await drive(ModelRun(agent, reload(rest.state)), policy=POLICY, journal=journal, outcomes=outcomes)
    assert isinstance(rest, RunEnded)
    events = [*journal.events, *rest.events]
    assert fields_of(events, "policy_decision", "index") == list(range(len(mix)))
    assert fields_of(events, "tool_completed", "index") == list(range(len(mix)))
    assert len(rest.state.executions) == len(mix)
    assert {int(call.call_id[1:]) for _, _, call in ran} <= allowed
    assert len(ran) == len({call.call_id for _, _, call in ran}), "no call runs twice"
    succeeded = {index for index, success in fields_of(events, "tool_completed", "index", "success") if success}
    assert succeeded <= {int(call.call_id[1:]) for _, _, call in ran}
    assert rest.state.batch is None
