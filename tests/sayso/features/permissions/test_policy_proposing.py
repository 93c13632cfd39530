"""The item that asks about a plan: its terms, its digest, and the envelope that its approval puts in force."""

from typing import Any

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action, Mode
from sayso.core.records.items import ItemDraft
from sayso.core.records.permissions import Plan
from sayso.core.records.suspensions import RunRef, Who
from sayso.core.records.terms import Fallback, FallbackAction, Quorum, RuleTerms
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput
from sayso.features.permissions.grants import digest_rule
from sayso.features.permissions.plans import draft_mandate
from tests.sayso.rule_builders import policy, rule

TOOLS = {name: ToolDefinition(name=name) for name in ("pay", "mail", "read")}
RUN = RunRef(id="run_1", agent="support", owner="desk", thread_id="t1", who=Who(owner="cleo", owner_manager="mia"))


def permit(rule_id: str, tool: str, *, people: int = 1, **terms: Any) -> Any:
    mandates = {"longest": "1d", "people": people}
    return rule(rule_id, "request_approval", tool_name=tool, mandates=mandates, terms=RuleTerms(**terms))


def draft(rules: Policy, *tools: str, run: RunRef = RUN, **limits: Any) -> ItemDraft:
    calls = [{"tool": one, "free": ["args"]} for one in tools]
    plan = Plan.model_validate({"for_s": 3600, "count": 5, "tools": calls, **limits})
    return draft_mandate(rules, run, plan, TOOLS)


def test_terms_are_the_strictest_of_all_permitting_rules() -> None:
    rules = policy(
        permit("pay", "pay", people=2, reviewers=("anna", "ben", "cleo"), timeout_s=600),
        permit("mail", "mail", reviewers=("ben", "cleo", "dan"), timeout_s=60, match_number=True),
        rule("elsewhere", "request_approval", tool_name="drop", terms=RuleTerms(reviewers=("eve",))),
    )
    terms = draft(rules, "pay", "mail").terms
    assert (terms.reviewers, terms.quorum, terms.timeout_s) == (("ben", "cleo"), Quorum(approve=2, deny=1), 60)
    assert terms.match_number
    assert draft(rules, "mail").terms.quorum == Quorum()


def test_plan_under_a_rule_that_asks_too_many_people_is_refused() -> None:
    rules = policy(permit("pay", "pay", people=2, reviewers=("anna",)))
    with pytest.raises(InvalidInput, match="Nobody can approve a plan under the rule pay"):
        draft(rules, "pay")


def test_no_timeout_approves_a_plan() -> None:
    rules = policy(permit("pay", "pay", fallback=Fallback(action=FallbackAction.APPROVE), unattended_approval=True))
    assert draft(rules, "pay").terms.fallback.action is FallbackAction.DENY


def test_manager_of_the_keys_owner_is_asked_by_name() -> None:
    rules = policy(permit("pay", "pay", reviewers=("manager_of:who.owner",)))
    assert draft(rules, "pay").terms.reviewers == ("mia",)


def test_item_is_bound_to_definitions_and_rules() -> None:
    rules = policy(permit("pay", "pay"))
    item = draft(rules, "pay")
    assert item.mandate is not None
    assert item.mandate.rules == {"pay": digest_rule(rules.rules[0])}
    other_tools = {"pay": TOOLS["pay"].model_copy(update={"description": "Pays."})}
    plan = Plan.model_validate({"for_s": 3600, "count": 5, "tools": [{"tool": "pay", "free": ["args"]}]})
    others = [
        draft_mandate(rules, RUN, plan, other_tools),
        draft(policy(permit("pay", "pay", timeout_s=60)), "pay"),
        draft(rules, "pay", count=6),
        draft_mandate(rules, RUN, plan, TOOLS, "run_1"),
    ]
    assert len({one.tool.definition for one in (item, *others)}) == 5, "the digest of the item includes it"


def test_rules_for_other_agents_permit_nothing() -> None:
    mandates = {"longest": "1d"}
    rules = policy(
        rule("pay", "request_approval", tool_name="pay", agent="sales", mandates=mandates),
        default=Action.REQUEST_APPROVAL,
    )
    with pytest.raises(InvalidInput, match="no rule lets a mandate cover calls of pay"):
        draft(rules, "pay")
    assert draft(rules, "pay", run=RUN.model_copy(update={"agent": "sales"})).rule_id == "pay"


def test_allowed_tools_alone_need_a_rule_that_permits_mandates() -> None:
    allowing = rule("reads", "allow", tool_name="read")
    with pytest.raises(InvalidInput, match="No rule in force permits mandates"):
        draft(policy(allowing), "read")
    rules = policy(allowing, permit("pay", "pay"), terms=RuleTerms(reviewers=("ben",)))
    item = draft(rules, "read")
    assert (item.rule_id, item.terms.reviewers) == (None, ("ben",))


def test_shadow_rules_permit_nothing() -> None:
    shadow = permit("pay", "pay").model_copy(update={"mode": Mode.SHADOW})
    with pytest.raises(InvalidInput):
        draft(policy(shadow, default=Action.REQUEST_APPROVAL), "pay")
