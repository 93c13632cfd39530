"""Undoing tools: what a tool with an undo declares, which terms an offer has, and which calls run under a veto."""

import pytest
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import Action
from sayso.core.records.terms import EscalationStep, Quorum, RuleTerms, Stage
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.errors import InvalidInput
from sayso.runner.agents import Agent
from sayso.runner.batches import BatchCall, VetoTerms
from sayso.runner.judging import judge_turn
from sayso.runner.local import HeadlessProvider, run_agent
from sayso.runner.models import ModelTurn, ScriptedModel
from sayso.runner.reversals import make_undo_tool, make_undoing, offer_undo
from sayso.runner.schema_tools import tool_from_schema
from sayso.runner.tools import Tool, tool
from tests.sayso.rule_builders import event, policy, rule
from tests.sayso.runners import turn
from tests.sayso.samples import T0, ask, pending

ran: list[str] = []


def take_back(arguments: JsonObject, result: JsonValue) -> None:
    """Take a refund back."""


@tool(undo=take_back)
def refund(order: str) -> str:
    """Refund an order."""
    ran.append(order)
    return order


@tool
def keep(order: str) -> str:
    """Keep an order."""
    return order


RULES = policy(rule("small", "allow", tool_name_pattern="*", terms=RuleTerms(veto="10m")))
CALL = ToolCall(call_id="c", index=3, name="refund", args={"order": "A"})


def agent(*tools: Tool) -> Agent:
    turns = [turn(("refund", {"order": "A"})), ModelTurn(text="done")]
    return Agent(name="payer", instructions="x", tools=tools, model=ScriptedModel(turns))


def entry(terms: RuleTerms, output: JsonValue = "A") -> BatchCall:
    result = ToolResult(call_id="c", tool_name="refund", success=True, output=output)
    veto = VetoTerms(terms=terms, rule_version="v1")
    return BatchCall(call=CALL, action=Action.ALLOW, reason="small", rule_id="small", veto=veto, result=result)


def test_undo_makes_a_tool_reversible() -> None:
    schema: JsonObject = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    by_schema = tool_from_schema(lambda order: order, schema, name="refund", undo=take_back)
    assert (refund.definition.reversible, keep.definition.reversible, by_schema.definition.reversible) == (
        True,
        False,
        True,
    )
    assert "reversible" not in keep.definition.model_dump()
    assert make_undo_tool(refund).definition.name == "refund:undo"
    with pytest.raises(InvalidInput, match="no undo of keep"):
        make_undo_tool(keep)


def test_undo_takes_the_arguments_and_the_result() -> None:
    with pytest.raises(InvalidInput, match=r"undo\(arguments, result\)"):
        tool(undo=lambda arguments: arguments)(keep.function)


def test_only_a_call_with_an_undo_runs_under_a_veto() -> None:
    asked = turn(("refund", {"order": "A"}), ("keep", {"order": "A"}))
    batch, _ = judge_turn(agent(refund, keep), asked, RULES, event("any"))
    first, second = batch.calls
    assert (first.action, first.ask, first.veto is not None) == (Action.ALLOW, None, True)
    assert (second.action, second.ask is not None, second.veto) == (Action.REQUEST_APPROVAL, True, None)


async def test_run_without_a_desk_asks_first() -> None:
    ran.clear()
    ended = await run_agent(agent(refund), "go", policy=RULES, provider=HeadlessProvider())
    assert ran == []
    assert any("nothing here can undo" in str(each.data.get("reason")) for each in ended.events)


def test_offer_needs_one_reviewer_of_any_stage_within_the_veto() -> None:
    stages = (Stage(reviewers=("ada",)), Stage(reviewers=("ben", "group:ops")))
    terms = RuleTerms(veto="2h", stages=stages, step_up="code", secrets=("token",), channels=("mail",))
    draft = offer_undo(agent(refund), pending(ask()), entry(terms), T0)
    assert draft.terms.reviewers == ("ada", "ben", "group:ops")
    assert (draft.terms.quorum, draft.terms.stages, draft.terms.timeout_s) == (Quorum(), (), 7_200)
    assert (draft.terms.step_up, draft.terms.secrets, draft.terms.channels) == ("code", ("arguments.token",), ("mail",))
    assert draft.tool.args == {"arguments": {"order": "A"}, "result": "A"}
    assert draft.reverses is not None
    assert (draft.reverses.tool, draft.reverses.index, draft.rule_id) == ("refund", 3, "small")


def test_offer_of_any_reviewer_stays_open_to_any() -> None:
    terms = RuleTerms(veto="2h", escalate=(EscalationStep(after_s=9, reviewers=("ben",)),))
    assert offer_undo(agent(refund), pending(ask()), entry(terms), T0).terms.reviewers == ()


def test_offer_shows_the_beginning_of_a_large_result() -> None:
    shown = offer_undo(agent(refund), pending(ask()), entry(RuleTerms(veto="1m"), "x" * 40_000), T0).tool.args["result"]
    assert shown == f"{'x' * 2_000}… [40000 characters in all]"


def test_agent_that_has_lost_the_undo_has_no_tool_for_it() -> None:
    reversal = offer_undo(agent(refund), pending(ask()), entry(RuleTerms(veto="1m")), T0).reverses
    assert reversal is not None
    assert [each.name for each in make_undoing(agent(refund), reversal).tools] == ["refund:undo"]
    assert make_undoing(agent(keep), reversal).tools == ()
