"""Evaluation of a client's calls, and of edited arguments."""

from typing import Any

import pytest

from sayso.core.policy.decisions import KEYWORD
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import ExternalCall, evaluate_calls, judge_final
from sayso.core.policy.rules import Action
from sayso.core.records.items import ItemDraft, ItemKind
from sayso.core.records.suspensions import ResumeSpec, RunRef, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.transitions.deciding import suspend
from sayso.errors import PolicyForbids
from service.core.desk.changes import draft_suspension
from tests.sayso.rule_builders import event, policy, rule
from tests.sayso.samples import T0

TRANSFER = ToolDefinition(name="transfer", parameters={"type": "object"})
RUN = RunRef(id="run_1", agent="bot", owner="bot", thread_id="t")
SMALL = rule("small", "request_approval", priority=300, when="args.amount <= 100")
LARGE = rule(
    "large",
    "request_approval",
    when="args.amount > 100",
    terms={"reviewers": ["ada", "ben", "carla"], "quorum": {"approve": 2}},
)
TWO = policy(SMALL, LARGE, default=Action.REQUEST_APPROVAL)


def asked(rules: Policy, **args: Any) -> SuspensionRecord:
    call = ToolCall(call_id="c1", index=0, name="transfer", args=args)
    drafts, _ = evaluate_calls(rules, RUN, [ExternalCall(call, TRANSFER)])
    draft = draft_suspension("default", RUN, state=None).model_copy(update={"resume": ResumeSpec(mode="poll")})
    return suspend(draft, drafts, T0).record


def edit(
    rules: Policy, record: SuspensionRecord, args: Any, definition: ToolDefinition | None = TRANSFER
) -> ItemDraft | None:
    return judge_final(rules, record, record.items[0], args, definition).renewed


@pytest.mark.parametrize("amount", ["5000", [5000], None, {"n": 5000}, True])
def test_judge_final_in_doubt_asks_under_the_strictest_terms(amount: Any) -> None:
    anew = edit(TWO, asked(TWO, amount=50), {"amount": amount})
    assert anew is not None
    assert (anew.terms.quorum.approve, anew.terms.reviewers) == (2, ("ada", "ben", "carla"))
    assert anew.tool.args == {"amount": amount}
    assert "could not be evaluated" in str(anew.prompt.reason)


def test_judge_final_with_missing_argument() -> None:
    anew = edit(TWO, asked(TWO, amount=50), {})
    assert anew is not None
    assert anew.terms.quorum.approve == 2


def test_judge_final_in_doubt_keeps_the_items_terms() -> None:
    strict = policy(rule("strict", "request_approval", terms={"reviewers": ["ada"], "quorum": {"approve": 1}}))
    loose = policy(rule("loose", "request_approval", when="args.amount > 1"))
    anew = edit(loose, asked(strict, amount=50), {"amount": "5"})
    assert anew is not None
    assert anew.terms.reviewers == ("ada",)


@pytest.mark.parametrize(("env", "quorum"), [("test", 1), (["prod"], 2), (None, 2)])
def test_judge_final_with_changed_type_keeps_the_quorum(env: Any, quorum: int) -> None:
    prod = rule("prod", "request_approval", when="args.env == 'prod'", terms={"quorum": {"approve": 2}})
    rules = policy(prod, rule("rest", "request_approval", priority=1))
    anew = edit(rules, asked(rules, env="prod", on={"at": [1]}), {"env": env, "on": {"at": [2.5]}})
    assert anew is not None
    assert (anew.rule_id, anew.terms.quorum.approve) == ("rest", quorum)


def test_judge_final_that_might_be_denied() -> None:
    rules = policy(rule("never", when="args.amount > 100"), default=Action.REQUEST_APPROVAL)
    with pytest.raises(PolicyForbids, match=r"might deny transfer .* cannot evaluate them: rule never"):
        edit(rules, asked(rules, amount=50), {"amount": "5000"})
    closed = policy(rule("small", "request_approval", when="args.amount < 100"), default=Action.DENY)
    with pytest.raises(PolicyForbids, match="might deny"):
        edit(closed, asked(closed, amount=50), {"amount": [50]})


def test_judge_final_under_a_stricter_default() -> None:
    rules = policy(SMALL, default=Action.REQUEST_APPROVAL, terms=LARGE.terms)
    anew = edit(rules, asked(rules, amount=50), {"amount": 5000})
    assert anew is not None
    assert (anew.rule_id, anew.terms.quorum.approve) == (None, 2)


def test_judge_final_under_a_rule_made_stricter() -> None:
    record = asked(policy(rule("all", "request_approval")), amount=50)
    made = policy(rule("all", "request_approval", terms={"quorum": {"approve": 2}}))
    anew = edit(made, record, {"amount": 51})
    assert anew is not None
    assert anew.terms.quorum.approve == 2


@pytest.mark.parametrize("terms", [{}, {"reviewers": ["ada"], "escalate": [{"after_s": 9, "reviewers": ["ben"]}]}])
def test_judge_final_under_the_same_terms(terms: dict[str, Any]) -> None:
    rules = policy(rule("all", "request_approval", terms=terms))
    assert edit(rules, asked(rules, amount=50), {"amount": "51"}) is None


def test_judge_final_of_the_original_arguments() -> None:
    record = asked(TWO, amount="5000")
    assert record.items[0].terms.quorum.approve == 2
    assert edit(TWO, record, {"amount": "5000"}) is None


def test_judge_final_without_definition() -> None:
    with pytest.raises(PolicyForbids, match="no longer stored"):
        edit(TWO, asked(TWO, amount=50), {"amount": "5000"}, None)
    assert edit(TWO, asked(TWO, amount=50), {"amount": 51}, None) is None


@pytest.mark.parametrize("amount", ["5000", [5000], None])
def test_judge_asks_under_the_strictest_terms(amount: Any) -> None:
    (item,) = asked(TWO, amount=amount).items
    assert (item.terms.quorum.approve, item.terms.reviewers) == (2, ("ada", "ben", "carla"))


def test_judge_of_too_large_call_asks_under_the_strictest_terms() -> None:
    decision = TWO.judge(event("transfer", amount=50, more=[0] * 30_000))
    assert (decision.in_doubt, decision.terms.quorum.approve) == (Action.REQUEST_APPROVAL, 2)
    assert decision.terms.reviewers == ("ada", "ben", "carla")


QUESTION = ToolDefinition(
    name="transfer", parameters={"type": "object", KEYWORD: {"question": "note", "answer": "colour"}}
)


def put(rules: Policy, known: bool) -> ItemDraft:
    call = ToolCall(call_id="c1", index=0, name="transfer", args={"note": "Which colour?", "amount": 5000})
    (found,), _ = evaluate_calls(rules, RUN, [ExternalCall(call, QUESTION, known)])
    return found


@pytest.mark.parametrize("rules", [TWO, policy(default=Action.REQUEST_APPROVAL)], ids=["rule", "default"])
def test_client_definition_is_never_a_question(rules: Policy) -> None:
    found = put(rules, known=False)
    assert (found.kind, found.target_arg, found.prompt.title) == (ItemKind.APPROVAL, None, None)


def test_allowed_client_question_stays_allowed() -> None:
    found = put(policy(), known=False)
    assert (found.kind, found.preset is None) == (ItemKind.APPROVAL, False)


def test_question_never_replaces_a_rules_approval() -> None:
    found = put(TWO, known=True)
    assert (found.kind, found.rule_id, found.terms.quorum.approve) == (ItemKind.APPROVAL, "large", 2)
    assert put(policy(default=Action.REQUEST_APPROVAL), known=True).kind is ItemKind.INPUT


def test_judge_final_of_a_client_tool_is_no_question() -> None:
    record = asked(policy(rule("a", "request_approval", when="args.amount < 9")), amount=5)
    other = policy(rule("b", "request_approval", when="args.amount > 9"))
    anew = judge_final(other, record, record.items[0], {"amount": 50, "note": "Which?"}, QUESTION).renewed
    assert anew is not None
    assert anew.kind is ItemKind.APPROVAL


def test_evaluate_calls_of_a_turn() -> None:
    rules = policy(rule("long", when="step > 2"))
    call = ExternalCall(ToolCall(call_id="c1", index=0, name="transfer", args={}), TRANSFER)
    verdicts = [evaluate_calls(rules, RUN, [call], step)[0][0].preset for step in (1, 2, 3)]
    assert [one.verdict for one in verdicts if one is not None] == ["approved", "approved", "denied"]
    _, (started, *_) = evaluate_calls(rules, RUN, [call], 3)
    assert started.data["step"] == 3


@pytest.mark.parametrize("shared", ["$defs", "definitions"])
@pytest.mark.parametrize("stated", [True, False], ids=["the rule's schema", "the tool's schema"])
def test_typed_value_behind_a_reference_is_secret(shared: str, stated: bool) -> None:
    """A secret that nobody marks is not masked where later results quote it."""
    pin: dict[str, Any] = {shared: {"pin": {"type": "string", "writeOnly": True}}}
    answer: dict[str, Any] = {"type": "object", "properties": {"code": {"$ref": f"#/{shared}/pin"}}}
    asking = {"target_arg": "card", "response_schema": answer | pin} if stated else {"target_arg": "card"}
    parameters = {"type": "object", "properties": {"card": {"type": "object"} if stated else answer}, **pin}
    card = ToolDefinition(name="pay", description="Pays.", parameters=parameters)
    rules = policy(rule("r", "request_user_input", request_payload=asking))
    call = ExternalCall(ToolCall(call_id="c1", index=0, name="pay", args={}), card)
    (item,), _ = evaluate_calls(rules, RunRef(id="run_1", thread_id="t1", agent="support", owner="desk"), [call], 0)
    assert item.terms.secrets == ("card.code",)
