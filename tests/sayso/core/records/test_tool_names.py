"""Tool names: valid characters, and names that look like one in a rule."""

from typing import Any

import pytest

from sayso.core.policy.rules import Action
from sayso.core.records.tools import ToolDefinition, check_tool_name, find_alike
from sayso.errors import InvalidInput
from sayso.gating.decorator import gate
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from sayso.runner.protocol import build_agent
from sayso.runner.tools import Tool
from sayso.testing import InProcessDesk
from tests.sayso.adapters.test_starting import Slip
from tests.sayso.rule_builders import event, policy, rule

MAIL = rule("mail", "request_approval", tool_name="send_email", terms={"reviewers": ["ada"]})
STRANGE = ["send email", "send_email ", " send_email", "send_email\n", "\u0455end_email", "send_e\u200bmail", ""]


@pytest.mark.parametrize("name", ["send_email", "bank.pay", "mcp/files:read-all", "A1", "_", "x" * 200])
def test_check_tool_name_accepts_plain_characters(name: str) -> None:
    assert check_tool_name(name) == name


@pytest.mark.parametrize("name", [*STRANGE, "x" * 201])
def test_check_tool_name_refuses_other_characters(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"The tool name .*\. (Rename it|Use 1 to 200)"):
        check_tool_name(name)


@pytest.mark.parametrize("name", STRANGE)
def test_agent_refuses_an_invalid_tool_name(name: str) -> None:
    definition = ToolDefinition.model_construct(name=name, description="", parameters={}, idempotent=False)
    with pytest.raises(InvalidInput, match="cannot work: the tool name"):
        Agent(name="bot", instructions="x", tools=(Tool(definition, print),), model=ScriptedModel([]))


def test_an_agent_of_a_framework_with_a_tool_of_a_strange_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"has ' ' \(U\+0020\) as character 5"):
        build_agent(Slip(), "bot", {"send email": ToolDefinition(name="send email")})


def test_gate_refuses_an_invalid_tool_name() -> None:
    with pytest.raises(InvalidInput, match="as character 5"):
        gate("send email", {}, client=InProcessDesk().client())


def test_in_process_desk_refuses_an_invalid_tool_name() -> None:
    body: Any = {"mode": "poll", "calls": [{"tool": "send email", "definition": {}}]}
    with pytest.raises(InvalidInput, match="as character 5"):
        InProcessDesk().client().suspend(body)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("send_email", "Send_Email"),
        ("send_email", "sendEmail"),
        ("send_email", "SENDEMAIL"),
        ("send_email", "send-email"),
        ("send_email", "_send.email_"),
        ("send_email", "send_emai1"),
        ("pay", "Pay"),
        ("payment", "payrnent"),
        ("wipe", "vv1pe"),
        ("car_name", "carnarne"),
        ("send_*", "Send-Money"),
        ("send_*", "sendMoney"),
        ("*.write", "files/Write"),
        ("for?_x", "Form_X"),
        ("[rt]efund", "REFUND"),
        ("db.*", "DB_drop"),
        ("delete_*", "de1ete_user"),
        ("*class", "rn_c1ass"),
    ],
)
def test_names_look_alike_but_for_case_separators_and_letters(pattern: str, name: str) -> None:
    assert find_alike(frozenset({pattern}), name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("send_email", "send_email"),
        ("send_email", "send_emails"),
        ("send_*", "send_money"),
        ("send_*", "sender"),
        ("send_*", "send"),
        ("*.*", "search"),
        ("a_*", "any"),
        ("transfer", "transfer2"),
        ("api_v6", "api_v8"),
        ("c*", "delete_user"),
        ("c*", "Cancel"),
        ("cl*", "distance"),
        ("i*", "list_users"),
        ("*.*", "read_file"),
        ("inc*", "index_files"),
        ("*line", "cancel_dine"),
    ],
)
def test_the_same_and_other_names_do_not_look_alike(pattern: str, name: str) -> None:
    assert not find_alike(frozenset({pattern}), name)


def test_find_alike_is_linear_in_wildcards() -> None:
    assert not find_alike(frozenset({"*A" * 99 + "*b"}), "a" * 200)


@pytest.mark.parametrize("name", ["Send_Email", "send-email", "sendEmail", "send_emai1"])
def test_judge_applies_rules_of_alike_names(name: str) -> None:
    denied = policy(rule("no-mail", tool_name="send_email")).judge(event(name))
    assert (denied.action, denied.policy_id, denied.resembles) == (Action.DENY, "no-mail", ("send_email",))
    assert "the tool's name looks like send_email" in denied.reason
    asked = policy(MAIL).judge(event(name))
    assert (asked.action, asked.policy_id, asked.terms.reviewers) == (Action.REQUEST_APPROVAL, "mail", ("ada",))


def test_take_stricter_of_own_and_alike_rule() -> None:
    own = rule("own", "allow", tool_name="Send_Email", priority=900)
    assert policy(own, MAIL).judge(event("Send_Email")).policy_id == "mail"
    loose = rule("loose", "allow", tool_name="send_email")
    kept = policy(loose, default=Action.REQUEST_APPROVAL).judge(event("Send_Email"))
    assert (kept.action, kept.policy_id, kept.resembles) == (Action.REQUEST_APPROVAL, None, ("send_email",))


def test_alike_rules_combine_their_terms() -> None:
    own = rule("own", "request_approval", tool_name="Send_Email", terms={"quorum": {"approve": 2}})
    mail = rule("mail", "request_approval", tool_name="send_email", request_payload={"allow_edit": False})
    found = policy(own, mail).judge(event("Send_Email"))
    assert (found.policy_id, found.terms.quorum.approve, found.matched_rules) == ("own", 2, ("own", "mail"))
    assert found.request_payload is not None
    assert not found.request_payload.allow_edit


def test_similar_name_needs_the_other_conditions_of_the_rule() -> None:
    rules = policy(rule("large", tool_name="pay", when="args.amount > 100"))
    assert rules.judge(event("Pay", amount=5)).action is Action.ALLOW
    assert rules.judge(event("Pay", amount=500)).action is Action.DENY
    doubted = rules.judge(event("Pay"))
    assert (doubted.action, doubted.in_doubt) == (Action.REQUEST_APPROVAL, Action.DENY)


def test_fallback_of_alike_name_never_approves() -> None:
    terms = {"unattended_approval": True, "fallback": {"action": "approve"}}
    rules = policy(rule("mail", "request_approval", tool_name="send_email", terms=terms))
    assert rules.judge(event("send_email")).terms.fallback.action == "approve"
    assert rules.judge(event("Send_Email")).terms.fallback.action == "deny"


def test_disabled_rule_resembles_no_name() -> None:
    rules = policy(rule("off", tool_name="send_email", enabled=False))
    assert rules.judge(event("Send_Email")).resembles == ()
