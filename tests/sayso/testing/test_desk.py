"""A desk in memory accepts and refuses what a real one does."""

from typing import Any

import httpx
import pytest

from sayso import Denied, Suspended
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import Action
from sayso.errors import InvalidInput, NotAllowed, PolicyForbids
from sayso.testing.desk import URL, InProcessDesk
from tests.sayso.banks import Bank, gated
from tests.sayso.rule_builders import policy, rule


def test_reviewer_decide_without_open_items(desk: InProcessDesk) -> None:
    with pytest.raises(InvalidInput, match="0 wait"):
        desk.reviewer.decide("approve")


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ({"args": {"zz": 1}}, "args does not fit the schema: 'order' is missing; 'amount' is missing; 'zz' is unknown"),
        (
            {"args": {"order": "A-1", "amount": "much"}},
            "args.amount does not fit the schema: 'much' is not of type number",
        ),
        ({"action": "aprove"}, "This does not fit: "),
        ({"arguments": {}}, "This does not fit: arguments"),
    ],
)
def test_decide_refuses_an_invalid_decision(desk: InProcessDesk, bank: Bank, decision: Any, message: str) -> None:
    with pytest.raises(Suspended):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    with pytest.raises(InvalidInput, match=message):
        desk.reviewer.decide(**decision)
    assert len(desk.waiting) == 1
    desk.reviewer.decide(args={"order": "A-1", "amount": 4})


def test_reviewer_decide_judges_edited_arguments(bank: Bank) -> None:
    desk = InProcessDesk(
        policy=policy(
            rule("large", when="args.amount > 500"),
            rule("medium", "request_approval", when="args.amount > 50", terms={"timeout_s": 7}),
            default=Action.REQUEST_APPROVAL,
        )
    )
    with pytest.raises(Suspended):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    with pytest.raises(PolicyForbids, match="The rule large denies refund"):
        desk.reviewer.decide(args={"order": "A-1", "amount": 900})
    desk.reviewer.decide(args={"order": "A-1", "amount": 90})
    ((_, item),) = desk.waiting
    assert (item.tool.args["amount"], item.terms.rule_id) == (90, "medium")
    desk.reviewer.decide()
    assert desk.waiting == []


def test_reviewer_decides_for_a_group(bank: Bank) -> None:
    desk = InProcessDesk("version: 1\ndefault: request_approval\nterms: {reviewers: ['group:ops']}\nrules: []\n")
    with pytest.raises(Suspended):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    with pytest.raises(NotAllowed, match="group:ops"):
        desk.reviewer.decide()
    desk.reviewer.groups = ("ops",)
    desk.reviewer.decide()
    assert desk.waiting == []


def test_suspend_refuses_an_invalid_body(desk: InProcessDesk) -> None:
    call: JsonObject = {"tool": "deploy", "definition": {"parameters": {"type": "object", "required": ["to"]}}}
    with pytest.raises(InvalidInput, match="mode: Field required"):
        desk.client().suspend({})
    with pytest.raises(InvalidInput, match=r"calls\[0\].args does not fit the schema: 'to' is missing"):
        desk.client().suspend({"mode": "poll", "calls": [call]})


def test_runs_are_listed_newest_first(desk: InProcessDesk, bank: Bank) -> None:
    assert desk.client().runs().runs == []
    desk.reviewer.approves("refund")
    gated(desk, bank)("A-1", 5.0)
    with pytest.raises(Suspended):
        gated(desk, bank, wait_s=0, client=desk.client(), name="other")("A-2", 5.0)
    assert [one.status for one in desk.client().runs().runs] == ["suspended", "completed"]
    assert len(desk.client().runs("completed").runs) == 1


def test_desk_counts_the_steps_of_a_thread(bank: Bank) -> None:
    desk = InProcessDesk(policy=policy(rule("long", when="step > 2"), default=Action.ALLOW))
    for order in ("A-1", "A-2"):
        gated(desk, bank, thread_id="t1")(order, 5.0)
    with pytest.raises(Denied):
        gated(desk, bank, thread_id="t1")("A-3", 5.0)
    gated(desk, bank, thread_id="t2")("A-4", 5.0)
    with pytest.raises(Denied):
        gated(desk, bank, step=3)("A-5", 5.0)
    assert [one.step for one in desk.records.values()] == [1, 2, 3, 1, 3]


def test_gate_refuses_an_invalid_step(desk: InProcessDesk, bank: Bank) -> None:
    with pytest.raises(InvalidInput, match="step=0 is not the number of a turn"):
        gated(desk, bank, step=0)


def test_suspend_ignores_a_question_in_a_clients_schema(desk: InProcessDesk) -> None:
    parameters: Any = {"type": "object", "x-sayso-question": {"question": "note", "answer": "colour"}}
    call: Any = {"tool": "transfer", "args": {"note": "Which?"}, "definition": {"parameters": parameters}}
    desk.client().suspend({"mode": "poll", "calls": [call]})
    ((_, item),) = desk.waiting
    assert (item.kind, item.prompt.title) == ("approval", None)
    with pytest.raises(InvalidInput, match="'value' is not allowed"):
        desk.reviewer.decide("value", value="blue")


def test_edit_that_cannot_be_judged_waits_for_the_higher_quorum(bank: Bank) -> None:
    large = rule("large", "request_approval", when="args.amount > 100", terms={"quorum": {"approve": 2}})
    desk = InProcessDesk(policy=policy(large, default=Action.REQUEST_APPROVAL))
    call: Any = {"tool": "transfer", "args": {"amount": 5}, "definition": {}}
    desk.client().suspend({"mode": "poll", "calls": [call]})
    desk.reviewer.decide(args={"amount": "5000"})
    ((_, item),) = desk.waiting
    assert (item.terms.quorum.approve, item.tool.args) == (2, {"amount": "5000"})
    desk.reviewer.decide()
    assert len(desk.waiting) == 1


def test_agent_sees_no_quorum_and_no_open_decision(bank: Bank) -> None:
    terms = {"quorum": {"approve": 2}, "sample": {"after": 0.5}}
    desk = InProcessDesk(policy=policy(rule("two", "request_approval", terms=terms)))
    with pytest.raises(Suspended):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    desk.reviewer.decide()
    ((record, _),) = desk.waiting
    request = httpx.Request("GET", f"{URL}/api/v1/suspensions/{record.id}", headers={"Authorization": "Bearer agent"})
    (item,) = desk.respond(request).json()["items"]
    assert (item["terms"]["quorum"], item["decisions"], item["drawn"]) == (None, [], "")
    assert "sample" not in item["terms"]
