"""Plans that deny every other call, and planned calls that a person decides."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.counters.readings import Reading, name_scope_of
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.permissions import Mandate, Plan, PlannedCalls
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.sentences.plans import write_plan
from sayso.core.transitions.deciding import suspend
from sayso.features.permissions.making import draft_from, find_confining
from sayso.features.permissions.plans import draft_mandate
from service.core.desk.changes import draft_suspension
from tests.builders import run_ref
from tests.sayso.rule_builders import event, policy, rule

RULES = policy(
    rule("payments", "request_approval", tool_name="pay", mandates={"longest": "1h"}),
    rule("reads", "allow", tool_name_pattern="read_*"),
    rule("never", "deny", tool_name="drop"),
    default=Action.REQUEST_APPROVAL,
)
TOOLS = {name: ToolDefinition(name=name) for name in ("pay", "read_mail", "read_bill", "drop", "mail")}
RUN = run_ref(thread_id="t1")
SILENT = {"tool": "pay", "equal": {"args.to": "landlord"}}
ASKED = {"tool": "pay", "equal": {"args.to": "friend"}, "free": ["args.amount"], "ask": True}
READ = {"tool": "read_bill", "free": ["args"]}


def plan(*tools: dict[str, Any], outside: str = "deny") -> Plan:
    return Plan.model_validate({"for_s": 3600, "count": 10, "tools": tools, "outside": outside})


def propose(*tools: dict[str, Any], outside: str = "deny", rules: Policy = RULES) -> tuple[SuspensionRecord, Mandate]:
    item = draft_mandate(rules, RUN, plan(*tools, outside=outside), TOOLS)
    record = draft_suspension("t", RUN, state=None).model_copy(
        update={"id": "sus_1", "resume": ResumeSpec(mode="poll")}
    )
    record = suspend(record, (item,), 1_000).record
    envelope = record.items[0].mandate
    assert envelope is not None
    return record, draft_from(record, record.items[0], envelope, 1_000, (Actor(id="anna", kind=ActorKind.HUMAN),))


def judge(*mandates: Mandate, tool: str = "pay", rules: Policy = RULES, **args: Any) -> PolicyDecision:
    readings = {name_scope_of(mandates[0]): Reading(mandates=mandates)}
    readings |= {mandate.count_counter: Reading() for mandate in mandates}
    facts = {"started_by": RUN.owner, "thread_id": RUN.thread_id, "definition": TOOLS[tool].digest}
    return rules.judge(event(tool, agent=RUN.agent, tool_args=args, readings=readings, subagent_name="", **facts))


def test_calls_outside_a_denying_plan_are_denied() -> None:
    _, made = propose(SILENT, READ)
    assert judge(made, to="landlord").action is Action.ALLOW
    assert judge(made, tool="read_bill", n=1).action is Action.ALLOW
    for outside in (judge(made, to="thief"), judge(made, tool="read_mail"), judge(made, tool="mail")):
        assert (outside.action, outside.policy_id == "never", outside.allowance) == (Action.DENY, False, ())
        assert "It is outside mandate man_1. While man_1 is in force, such calls are denied." in outside.reason
        assert outside.mandate is not None
        assert outside.mandate.envelope.tools == ()


def test_one_denying_plan_denies_what_all_plans_leave_outside() -> None:
    (_, first), (_, second) = propose(SILENT), propose(READ, outside="ask")
    second = second.model_copy(update={"id": "man_2"})
    assert judge(first, second, tool="read_bill").action is Action.ALLOW
    assert judge(second, first, tool="read_mail").action is Action.DENY


def test_planned_calls_with_ask_are_asked_with_their_arguments() -> None:
    _, made = propose(SILENT, ASKED)
    asked = judge(made, to="friend", amount=5)
    assert (asked.action, asked.policy_id, asked.charges) == (Action.REQUEST_APPROVAL, "payments", ())
    assert "Mandate man_1 plans it and leaves it to a person." in asked.reason
    assert judge(made, to="friend", amount=5, memo="x").action is Action.DENY
    assert judge(made, to="thief", amount=5).action is Action.DENY


def test_planned_calls_with_ask_are_asked_even_if_the_rules_allow_them() -> None:
    _, made = propose({**READ, "ask": True})
    assert judge(made, tool="read_bill").action is Action.REQUEST_APPROVAL


def test_planned_calls_with_ask_stay_denied_where_a_rule_denies() -> None:
    _, made = propose({"tool": "drop", "ask": True}, READ)
    assert judge(made, tool="drop").policy_id == "never"


@pytest.mark.parametrize("tools", [(READ,), (ASKED,), (ASKED, READ)])
def test_plan_that_silences_no_rule_and_denies_the_rest_is_in_force_at_once(tools: tuple[dict[str, Any], ...]) -> None:
    record, _ = propose(*tools)
    found = find_confining(record, 1_000)
    assert found is not None
    assert (found.granters, found.until_ms) == ((), 3_601_000)


@pytest.mark.parametrize(
    ("tools", "outside"), [((SILENT,), "deny"), ((READ, SILENT, ASKED), "deny"), ((READ,), "ask"), ((ASKED,), "ask")]
)
def test_other_plans_wait_for_a_person(tools: tuple[dict[str, Any], ...], outside: str) -> None:
    record, _ = propose(*tools, outside=outside)
    assert record.items[0].open
    assert find_confining(record, 1_000) is None


@pytest.mark.parametrize("limit", [{"count": 1}, {"sum": {"of": "args.amount"}}])
def test_planned_calls_with_ask_take_no_count_or_sum(limit: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="leave out `count` and `sum`, or `ask`"):
        PlannedCalls.model_validate({"tool": "pay", "ask": True, **limit})


def test_write_plan_tells_asked_calls_apart_and_what_happens_to_others() -> None:
    record, _ = propose(SILENT, ASKED)
    envelope = record.items[0].mandate
    assert envelope is not None
    text = write_plan(envelope)
    silent, _, asked = text.partition("These calls are planned, and each is asked about:")
    assert "landlord" in silent
    assert "friend" in asked
    assert "Every other call of this conversation is denied" in asked
