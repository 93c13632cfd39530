"""A rule that allows with a veto: where it may stand, and what happens to calls that nothing can undo."""

import pytest

from sayso.core.policy.decisions import settle_veto
from sayso.core.policy.external import ExternalCall, evaluate_calls
from sayso.core.policy.rules import Action
from sayso.core.records.judgements import read_veto_s
from sayso.core.records.suspensions import RunRef
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.runner.judging import judge_turn
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems
from tests.sayso.rule_builders import event, policy, rule
from tests.sayso.runners import make_agent, turn

RULE = "  - {id: pay, tool: refund, action: allow, terms: {veto: 10m, reviewers: [anna]}}\n"
RUN = RunRef(id="run_1", agent="support", owner="bot", thread_id="run_1")
CALL = ToolCall(call_id="c", index=0, name="refund", args={"amount": 5})


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1), ("10m", 600), ("168h", 604_800), ("7d", 604_800)])
def test_veto_is_read_in_seconds(text: str, seconds: int) -> None:
    assert read_veto_s(text) == seconds
    assert parse(HEAD + RULE.replace("10m", text)).rules[0].terms.veto == text


@pytest.mark.parametrize("text", ["0s", "8d", "169h", "604801s", "1w", "10", "ten minutes", "-1m", "1m\\n"])
def test_veto_outside_of_its_bounds_is_refused(text: str) -> None:
    (problem,) = read_problems(HEAD + RULE.replace("10m", f'"{text}"'))
    assert "from 1s to 7d, such as 10m" in problem


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ("action: request_approval", "lets nothing run at once; remove veto, or use allow"),
        ("action: deny", "lets nothing run at once"),
        ("action: allow, subjects: [any]", "a model call cannot be undone"),
    ],
)
def test_veto_is_refused_where_nothing_runs_at_once(part: str, fault: str) -> None:
    (problem,) = read_problems(HEAD + RULE.replace("action: allow", part))
    assert fault in problem


@pytest.mark.parametrize(
    ("terms", "fault"),
    [
        ("confirm_by: who.person", "nobody confirms a call that runs at once"),
        ("quorum: {approve: 3}", "the quorum exceeds the 1 reviewers"),
    ],
)
def test_veto_is_refused_with_terms_that_cannot_ask(terms: str, fault: str) -> None:
    (problem,) = read_problems(HEAD + RULE.replace("veto: 10m", f"veto: 10m, {terms}"))
    assert fault in problem


def test_veto_of_the_whole_file_is_refused() -> None:
    problems = read_problems("version: 1\ndefault: allow\nterms: {veto: 10m}\nrules: []\n")
    assert problems == ["policy.yaml:3:9: terms.veto: belongs in each rule that needs it; move it there"]


def test_call_that_nothing_can_undo_is_asked_about() -> None:
    """A client only asks, so nobody could undo what it runs, nor a tool of an agent that has no undo."""
    rules = parse(HEAD + RULE)
    (draft,), events = evaluate_calls(rules, RUN, [ExternalCall(CALL, ToolDefinition(name="refund", reversible=True))])
    batch, judged = judge_turn(make_agent([]), turn(("refund", {"order": "A-1", "amount": 80})), rules, event("any"))
    asked = batch.calls[0].ask
    assert asked is not None
    for each in (draft, asked):
        assert each.preset is None
        assert (each.terms.reviewers, each.terms.veto) == (("anna",), None)
        assert "with a veto of 10m, and nothing here can undo this call." in (each.prompt.reason or "")
    assert {events[1].data["action"], judged[1].data["action"]} == {Action.REQUEST_APPROVAL}


def test_veto_stays_on_a_call_that_can_be_undone() -> None:
    decision = parse(HEAD + RULE).judge(event())
    assert settle_veto(decision, reversible=True) is decision
    assert settle_veto(decision, reversible=False).action is Action.REQUEST_APPROVAL


def test_veto_of_a_rule_for_a_name_alike_applies() -> None:
    vetoed = rule("pay", "allow", tool_name="refund", terms=RuleTerms(veto="10m"))
    free = rule("free", "allow", tool_name="ref_und")
    assert policy(vetoed, free).judge(event("ref_und")).terms.veto == "10m"


def test_doubt_about_a_rule_with_a_veto_asks() -> None:
    unsure = rule("pay", "allow", tool_name="refund", when="args.amount < 100", terms=RuleTerms(veto="10m"))
    decision = policy(unsure).judge(event(amount="many"))
    assert (decision.action, decision.terms.veto) == (Action.REQUEST_APPROVAL, None)
