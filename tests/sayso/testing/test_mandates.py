"""Plans at a desk in memory: proposed, approved, spent, ended, as at a real one."""

from typing import Any

import pytest

from sayso import Client
from sayso.core.canonical_json import JsonObject
from sayso.errors import IdempotencyConflict, InvalidInput, NotFound
from sayso.testing import InProcessDesk
from sayso.wire.rulebook import MandateView

RULES = """\
version: 1
default: request_approval
rules:
  - id: payments
    tool: pay
    action: request_approval
    mandates: {longest: 8h, count: 20, sum: {of: args.amount, max: 500}, by: [args.to]}
  - {id: reading, tool: read, action: allow}
"""
PAY: JsonObject = {
    "tool": "pay",
    "definition": {},
    "equal": {"args.to": "ann"},
    "at_most": {"args.amount": 300},
    "sum": {"of": "args.amount"},
}
PLAN: JsonObject = {"thread_id": "t1", "title": "Pay Ann", "for_s": 3600, "count": 3, "sum": 500, "tools": [PAY]}


@pytest.fixture
def desk() -> InProcessDesk:
    return InProcessDesk(policy=RULES)


def verdict(client: Client, key: str, tool: str = "pay", thread_id: str = "t1", **args: Any) -> str:
    """Return approved, denied or asked."""
    calls: list[Any] = [{"tool": tool, "args": args, "definition": {}}]
    (item,) = client.suspend({"mode": "poll", "thread_id": thread_id, "calls": calls}, key=key).items
    return str(item.outcome.verdict) if item.outcome is not None else "asked"


def propose(desk: InProcessDesk, plan: JsonObject = PLAN) -> MandateView:
    """Propose a plan, and let the reviewer approve it."""
    client = desk.client("bot")
    proposed = client.propose_mandate(plan, key="plan")
    assert proposed.state == "proposed"
    desk.reviewer.approves("mandate")
    return client.await_mandate(proposed.id)


def test_approved_plan_lets_its_calls_run_and_no_others(desk: InProcessDesk) -> None:
    client = desk.client("bot")
    assert verdict(client, "before", to="ann", amount=100) == "asked"
    mandate = propose(desk)
    assert (mandate.in_force, mandate.approved_by, mandate.title) == (True, ["reviewer"], "Pay Ann")
    assert verdict(client, "1", to="ann", amount=300) == "approved"
    assert verdict(client, "2", to="bob", amount=1) == "asked"
    assert verdict(client, "3", to="ann", amount=301) == "asked"
    assert verdict(client, "4", "read", path="/etc") == "asked", "outside of the plan, although the rules allow it"
    assert verdict(client, "5", thread_id="t2", to="ann", amount=1) == "asked"
    assert verdict(desk.client("other"), "6", to="ann", amount=1) == "asked"
    assert verdict(client, "7", to="ann", amount=201) == "asked", "more than is left"
    assert verdict(client, "8", to="ann", amount=200) == "approved"
    found = client.find_mandate(mandate.id)
    assert (found.calls, found.total) == (2, "500")


def test_plan_ends_with_its_time_or_its_agent(desk: InProcessDesk) -> None:
    client, mandate = desk.client("bot"), propose(desk)
    desk.clock.advance(3599)
    assert verdict(client, "1", to="ann", amount=1) == "approved"
    assert client.end_mandate(mandate.id).state == "revoked"
    assert client.end_mandate(mandate.id).state == "revoked"
    assert verdict(client, "2", to="ann", amount=1) == "asked"
    again = client.await_mandate(client.propose_mandate(PLAN, key="another").id)
    desk.clock.advance(3600)
    assert client.find_mandate(again.id).state == "ended"
    assert verdict(client, "3", to="ann", amount=1) == "asked"


def test_denied_or_withdrawn_plan_lets_nothing_run(desk: InProcessDesk) -> None:
    client = desk.client("bot")
    denied = client.propose_mandate(PLAN, key="a")
    desk.reviewer.decide("deny")
    assert client.find_mandate(denied.id).state == "denied"
    withdrawn = client.propose_mandate(PLAN, key="b")
    assert client.end_mandate(withdrawn.id).state == "withdrawn"
    assert verdict(client, "1", to="ann", amount=1) == "asked"


def test_plan_that_only_confines_is_in_force_at_once(desk: InProcessDesk) -> None:
    reading: JsonObject = {"tool": "read", "definition": {}, "free": ["args"]}
    plan: JsonObject = {"thread_id": "t1", "for_s": 3600, "count": 9, "outside": "deny", "tools": [reading]}
    client = desk.client("bot")
    assert client.propose_mandate(plan, key="plan").in_force
    assert desk.waiting == []
    assert verdict(client, "1", "read", path="/srv") == "approved"
    assert verdict(client, "2", to="ann", amount=1) == "denied"


def test_wrong_plans_are_refused(desk: InProcessDesk) -> None:
    client = desk.client("bot")
    made = client.propose_mandate(PLAN, key="plan")
    assert client.propose_mandate(PLAN, key="plan").id == made.id
    with pytest.raises(IdempotencyConflict):
        client.propose_mandate({**PLAN, "count": 2}, key="plan")
    with pytest.raises(NotFound):
        desk.client("other").find_mandate(made.id)
    with pytest.raises(InvalidInput, match="at most 28800 s"):
        client.propose_mandate({**PLAN, "for_s": 86_400}, key="long")
    with pytest.raises(InvalidInput, match="two definitions"):
        client.propose_mandate({**PLAN, "tools": [PAY, {**PAY, "definition": {"description": "x"}}]}, key="two")
    with pytest.raises(InvalidInput, match="run_id"):
        client.propose_mandate({**PLAN, "run_id": "run_1"}, key="run")
