"""What cases cannot say about the cookbook: plans that people approve, and what assessors answer."""

from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.assessing import name_assessment
from sayso.core.policy.counters.readings import Reading
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.rules import Action
from sayso.core.records.judgements import Assessment, Level
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk
from tests.sayso.features.whatif.test_cookbook import POLICIES, read_policy

PLANNED = "A plan that is approved once"
ASSESSED = "A second opinion of a fraud model"
SEND: JsonObject = {
    "tool": "send_money",
    "definition": {},
    "equal": {"args.recipient": "DE89"},
    "at_most": {"args.amount": 500},
    "sum": {"of": "args.amount"},
}
READ: JsonObject = {"tool": "read_invoice", "definition": {}, "free": ["args.id"]}
PLAN: JsonObject = {"thread_id": "november", "for_s": 3600, "count": 10, "sum": 900, "tools": [SEND, READ]}


class Payer:
    """An agent with an approved plan."""

    def __init__(self) -> None:
        self.desk, self.asked = InProcessDesk(POLICIES[PLANNED]), 0
        self.desk.reviewer.groups = ("finance",)
        self.desk.reviewer.approves("mandate")
        self.client = self.desk.client("payer")
        self.mandate = self.client.await_mandate(self.client.propose_mandate(PLAN, key="plan").id)

    def verdict(self, tool: str = "send_money", thread_id: str = "november", **args: Any) -> str:
        """Return approved, denied or asked."""
        self.asked += 1
        calls: list[Any] = [{"tool": tool, "args": args, "definition": {}}]
        body: JsonObject = {"mode": "poll", "thread_id": thread_id, "calls": calls}
        (item,) = self.client.suspend(body, key=f"call-{self.asked}").items
        return str(item.outcome.verdict) if item.outcome is not None else "asked"


def test_calls_of_an_approved_plan_pass() -> None:
    payer = Payer()
    assert payer.mandate.in_force
    assert payer.verdict("read_invoice", id="17") == "approved"
    assert [payer.verdict(recipient="DE89", amount=one) for one in (500, 400)] == ["approved", "approved"]
    assert payer.verdict(recipient="DE89", amount=1) == "asked", "the sum is spent"


@pytest.mark.parametrize(
    "args",
    [
        {"recipient": "GB29", "amount": 5},
        {"recipient": ["DE89", "GB29"], "amount": 5},
        {"recipient": "DE89", "amount": 500.01},
        {"recipient": "DE89", "amount": "5"},
        {"recipient": "DE89", "amount": -5},
        {"recipient": "DE89", "amount": 5, "copy_to": "GB29"},
        {"recipient": "DE89", "amount": 5, "thread_id": "december"},
        {"recipient": "DE89", "amount": 5, "tool": "send-money"},
        {"tool": "read_invoice", "path": "/etc/passwd"},
        {"tool": "read_invoices", "id": "17"},
    ],
)
def test_calls_that_try_to_slip_by_a_plan_are_asked(args: dict[str, Any]) -> None:
    assert Payer().verdict(**args) == "asked"


def test_plan_that_is_too_wide_is_refused() -> None:
    client = InProcessDesk(POLICIES[PLANNED]).client("payer")
    wide = {name: value for name, value in SEND.items() if name != "equal"}
    changes: list[JsonObject] = [
        {"for_s": 86_400},
        {"count": 21},
        {"sum": 5001},
        {"tools": [{**wide, "free": ["args.recipient"]}]},
    ]
    for change in changes:
        with pytest.raises(InvalidInput):
            client.propose_mandate({**PLAN, **change}, key=str(change))


def assess(name: str, said: Level | None) -> PolicyDecision:
    """Return the decision on a case of the page when the model says this, or has not been asked."""
    policy, cases = read_policy(ASSESSED)
    (event,) = (one.event for one in cases if one.name == name)
    key = name_assessment("fraud", event)
    found = {key: Reading(assessment=Assessment(key=key, assessor="fraud", level=said))} if said is not None else {}
    return policy.judge(event.model_copy(update={"readings": found}))


def test_refunds_follow_the_model_only_upwards() -> None:
    small = [assess("small", said).action for said in (Level.LOW, Level.MEDIUM, Level.HIGH, None)]
    assert small == [Action.ALLOW, *[Action.REQUEST_APPROVAL] * 3], "without an answer a person decides"
    quorums = [assess("large", said).terms.quorum.approve for said in (Level.LOW, Level.MEDIUM, Level.HIGH, None)]
    assert quorums == [1, 1, 2, 2]
    assert "Call the customer" in assess("large", Level.HIGH).reason


@pytest.mark.parametrize("name", ["negative", "amount as text", "list", "no amount"])
def test_low_rating_lets_no_odd_refund_run(name: str) -> None:
    assert assess(name, Level.LOW).action is Action.REQUEST_APPROVAL
