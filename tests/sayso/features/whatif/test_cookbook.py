"""Every policy of the cookbook loads without findings, and decides its calls as the page says."""

import re

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.policy.files.cases import Case, read_cases
from sayso.core.policy.files.findings import Known, find_findings
from sayso.core.policy.rules import Action
from sayso.features.whatif.cases import CaseResult, place_case, run_cases
from tests.pages import DOCS, read_page
from tests.sayso.core.policy.counters.calls import Calls
from tests.sayso.core.policy.rule_files import parse

TEXT = read_page("policies-cookbook")
RECIPE = re.compile(r"^### ([^\n]*)\n[^#]*?^```yaml\n(.*?)^```\n\n\[Cases\]\((.*?)\)$", re.MULTILINE | re.DOTALL)
POLICIES = {title: rules + (DOCS / cases).read_text(encoding="utf-8") for title, rules, cases in RECIPE.findall(TEXT)}
SLIPS = "  # These try to slip by.\n"


def read_policy(title: str) -> tuple[Policy, list[Case]]:
    """Return the rules under a heading, and their cases, which have no faults."""
    cases, faults = read_cases(POLICIES[title].encode(), title)
    assert faults == []
    policy: Policy = parse(POLICIES[title])
    return policy, cases


def judge(title: str, name: str) -> CaseResult:
    policy, cases = read_policy(title)
    (result,) = run_cases(policy, [one for one in cases if one.name == name])
    return result


def test_page_has_its_policies() -> None:
    assert len(POLICIES) == TEXT.count("```yaml") == TEXT.count("\n### ") >= 28
    assert len({*DOCS.glob("cookbook/*")}) == len(POLICIES)


@pytest.mark.parametrize("title", POLICIES)
def test_policy_decides_its_calls_as_stated(title: str) -> None:
    policy, cases = read_policy(title)
    assert [f"{one.case.name}: {one.fault}" for one in run_cases(policy, cases) if one.fault] == []
    assert find_findings(policy, Known()) == []


@pytest.mark.parametrize("title", POLICIES)
def test_policy_has_calls_that_pass_and_that_try_to_slip_by(title: str) -> None:
    passing, found, slipping = POLICIES[title].partition(SLIPS)
    assert found, "the calls that try to slip by stand below their comment"
    assert "expect: " in passing.partition("\ntests:\n")[2]
    assert slipping.count("expect: ") == slipping.count("name: ") >= 1, "each has a name"


@pytest.mark.parametrize("title", POLICIES)
def test_no_call_that_tries_to_slip_by_is_allowed(title: str) -> None:
    _, _, slipping = POLICIES[title].partition(SLIPS)
    assert "expect: allow" not in slipping


@pytest.mark.parametrize("title", POLICIES)
def test_a_tool_that_looks_alike_is_never_judged_more_freely(title: str) -> None:
    policy, cases = read_policy(title)
    for one in (case for case in cases if (case.event.tool_name or "").islower()):
        name = str(one.event.tool_name)
        own = policy.judge(place_case(policy, one)[0]).action
        for spelling in (name.upper(), name.replace("_", "-"), name.replace("_", "."), f"{name}_"):
            renamed = one.model_copy(update={"event": one.event.model_copy(update={"tool_name": spelling})})
            other = policy.judge(place_case(policy, renamed)[0]).action
            assert other is not Action.ALLOW or own is Action.ALLOW, f"{name} as {spelling}"


def test_unusual_amounts_are_asked_once_enough_is_known() -> None:
    calls = Calls(POLICIES["Unusual amounts"])
    for amount in range(1, 21):
        assert calls.verdict("pay_invoice", amount=amount) == "asked"
        calls.approve("pay_invoice", amount=amount)
    assert calls.verdict("pay_invoice", amount=18) == "approved"
    assert calls.verdict("pay_invoice", amount=40) == "asked"
    assert calls.verdict("pay_invoice", amount="40") == "asked"


def test_known_recipient_is_known_by_calls_that_ran() -> None:
    calls = Calls(POLICIES["The first payment to a recipient"])
    assert [calls.verdict("transfer", iban="CH93", amount=5) for _ in range(2)] == ["asked", "asked"]
    calls.approve("transfer", iban="CH93", amount=5)
    assert calls.verdict("transfer", iban="CH93", amount=5) == "approved"
    assert calls.verdict("transfer", iban="CH93 ", amount=5) == "asked"
    assert calls.verdict("transfer", iban=["CH93", "DE44"], amount=5) == "asked"


def test_budget_is_one_for_all_spellings_and_currencies() -> None:
    calls = Calls(POLICIES["A budget for all calls together"])
    assert calls.verdict("buy", amount=900, currency="EUR", order="1") == "approved"
    assert calls.verdict("buy", amount="100.01", currency="EUR", order="2") == "asked"
    assert calls.verdict("buy", amount="100.00", currency="EUR", order="3") == "approved"
    assert calls.verdict("buy", amount=0.01, currency="EUR") == "asked"


def test_four_eyes_also_decide_without_an_amount() -> None:
    policy, cases = read_policy("Four eyes")
    for case in cases[1:]:
        decision = policy.judge(case.event)
        assert (decision.terms.quorum.approve, decision.terms.reviewers) == (2, ("group:payments",)), case.name
        assert decision.terms.no_self_approval


def test_contracts_need_finance_and_legal_under_any_spelling() -> None:
    policy, cases = read_policy("Finance and legal together")
    for case in cases:
        assert policy.judge(case.event).terms.quorum.each_of == ("group:finance", "group:legal"), case.name


@pytest.mark.parametrize(("name", "reviewers"), [("case 1", ("ines",)), ("no manager", ("group:finance",))])
def test_expenses_go_to_the_manager_or_to_finance(name: str, reviewers: tuple[str, ...]) -> None:
    policy, cases = read_policy("The manager approves")
    (case,) = (one for one in cases if one.name == name)
    assert policy.judge(case.event).terms.reviewers == reviewers
    assert judge("The manager approves", name).fault == ""
