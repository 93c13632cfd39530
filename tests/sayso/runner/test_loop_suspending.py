"""Suspended batches: their items have what a reviewer needs, and invalid calls have no item."""

from typing import Any

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.records.events import TrailHead
from sayso.core.records.items import Answer, ItemKind
from sayso.core.records.suspensions import RunStatus
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.tools import tool
from sayso.runner.transcripts import RunState
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import (
    POLICY,
    Ledger,
    Ran,
    fields_of,
    make_agent,
    turn,
)
from tests.sayso.walks import CALLS, START
from tests.trails import append_events


async def pause_for(*calls: tuple[str, Any], rules: Any = POLICY, **changes: Any) -> RunSuspended[RunState]:
    rest = await drive(ModelRun(make_agent([], turn(*calls), **changes), START), policy=rules, journal=Ledger("run_1"))
    assert isinstance(rest, RunSuspended)
    return rest


async def test_approval_draft_has_all_details() -> None:
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
    (ask,) = pause.drafts
    assert (ask.kind, ask.call_id, ask.index, ask.target_arg) == (ItemKind.APPROVAL, "c0", 0, None)
    assert (ask.tool.name, ask.tool.args, ask.tool.idempotent) == ("refund", {"order": "A", "amount": 5}, False)
    assert (ask.prompt.title, ask.prompt.body, ask.prompt.reason) == ("Refund", "Is it due?", "money leaves")
    assert ask.prompt.metadata == {"team": "pay"}
    assert ask.allowed == (Answer.APPROVE, Answer.DENY)
    assert (ask.terms.timeout_s, ask.terms.reviewers) == (60, ("ada",))
    assert (ask.rule_id, ask.rule_version) == ("refunds", rules.version)


async def test_input_draft_has_the_schema_of_its_argument_or_rule() -> None:
    (ask,) = (await pause_for(CALLS["value"])).drafts
    assert (ask.kind, ask.target_arg, ask.allowed) == (ItemKind.INPUT, "code", (Answer.VALUE, Answer.DENY))
    assert ask.response_schema == {"type": "string", "pattern": "^[0-9]{4}$"}
    payload = {"target_arg": "code", "response_schema": {"type": "string", "maxLength": 4}}
    own = policy(rule("codes", "request_user_input", tool_name="pay", request_payload=payload))
    (ask,) = (await pause_for(CALLS["value"], rules=own)).drafts
    assert ask.response_schema == {"type": "string", "maxLength": 4}
    payload = {"target_arg": "code", "choices": ["1111", "2222"]}
    chosen = policy(rule("codes", "request_user_input", tool_name="pay", request_payload=payload))
    (ask,) = (await pause_for(CALLS["value"], rules=chosen)).drafts
    assert ask.choices == ("1111", "2222")


async def test_timeout_of_a_rule_overrides_the_agents() -> None:
    silent = policy(rule("refunds", "request_approval", tool_name="refund"))
    for rules, timeout_s in ((POLICY, 60), (silent, 7)):
        (ask,) = (await pause_for(CALLS["approve"], rules=rules, approval_timeout_s=7)).drafts
        assert ask.terms.timeout_s == timeout_s
    (ask,) = (await pause_for(CALLS["approve"], rules=silent)).drafts
    assert ask.terms.timeout_s == 300


async def test_call_with_a_failing_rule_is_asked_with_the_error() -> None:
    unsure = policy(rule("big", "allow", tool_name="look", when="args.amount > 100"))
    pause = await pause_for(CALLS["allow"], rules=unsure)
    assert "rule big" in str(pause.drafts[0].prompt.metadata["judging_error"])
    assert "rule big" in fields_of(pause.events, "policy_decision", "error")[0]
    assert "rule big" in fields_of(pause.events, "warning", "message")[0]


async def test_claims_are_separate_from_the_agents_context() -> None:
    """What a run brings along says that it is gold; the registered agent's context alone is trusted with that."""
    trusting = policy(rule("gold", tool_name="look", context_equals={"tier": "gold"}))
    claimed = policy(rule("gold", tool_name="look", claimed_equals={"tier": "gold"}))
    cases: tuple[tuple[Policy, dict[str, Any], str], ...] = (
        (trusting, {}, "allow"),
        (trusting, {"tier": "gold"}, "deny"),
        (claimed, {"tier": "plain"}, "deny"),
    )
    assert START.claimed == {"tier": "gold"}
    for rules, context, action in cases:
        journal = Ledger("run_1")
        await drive(
            ModelRun(make_agent([], turn(CALLS["allow"]), context=context), START), policy=rules, journal=journal
        )
        assert fields_of(journal.events, "policy_decision", "action") == [action]


# Calls that cannot run


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("refund", "{"), "cannot be read"),
        (("refund", "[1]"), "not a JSON object"),
        (("refund", '{"order": "A", "order": "B", "amount": 1}'), "appears twice"),
        (("refund", '{"order": "A", "amount": NaN}'), "NaN is not JSON"),
        (("refund", '{"order": "\\ud800", "amount": 1}'), "surrogate"),
        (("refund", '{"order": "A", "amount": %s}' % ("9" * 4001)), "more than 4000 digits"),
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
async def test_call_that_cannot_run_is_refused_without_asking(call: tuple[str, Any], words: str) -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(call), approval_denial_policy="fail")
    journal = Ledger("run_1")
    end = await drive(ModelRun(agent, START), policy=POLICY, journal=journal)
    assert isinstance(end, RunEnded)
    assert end.status is RunStatus.COMPLETED, "a mistake of the model is no denial"
    assert fields_of(journal.events, "policy_decision", "action") == ["deny"]
    assert words in fields_of(journal.events, "policy_decision", "reason")[0]
    assert words in fields_of(journal.events, "tool_completed", "error")[0]
    assert ran == []
    append_events(TrailHead(), tuple(journal.events), 0)


async def test_denied_call_is_denied_with_any_arguments() -> None:
    agent = make_agent([], turn(("drop", {})), approval_denial_policy="degrade")
    end = await drive(ModelRun(agent, START), policy=POLICY, journal=Ledger("run_1"))
    assert isinstance(end, RunEnded)
    assert (end.status, fields_of(end.events, "tool_completed", "error")) == (RunStatus.DEGRADED, ["Denied by policy"])


async def test_rule_asking_for_an_unknown_argument_runs_nothing() -> None:
    ran: Ran = []
    rules = policy(rule("codes", "request_user_input", tool_name="look", request_payload={"target_arg": "code"}))
    journal = Ledger("run_1")
    await drive(ModelRun(make_agent(ran, turn(CALLS["allow"])), START), policy=rules, journal=journal)
    assert "'code', which look does not take" in fields_of(journal.events, "tool_completed", "error")[0]
    assert ran == []


async def test_empty_text_means_no_arguments() -> None:
    rang: list[int] = []

    @tool
    def ring() -> None:
        """Ring."""
        rang.append(1)

    await drive(
        ModelRun(make_agent([], turn(("ring", " ")), tools=(ring,)), START), policy=policy(), journal=Ledger("run_1")
    )
    assert rang == [1]
