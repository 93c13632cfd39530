"""Tests of the demo's policy."""

from typing import Any

import pytest

from demo.model import load_turns
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.reading import load_rulebook
from sayso.core.policy.rules import Action
from service.core.settings import CHECKOUT

POLICY = load_rulebook(CHECKOUT / "demo" / "policy.yaml")


def judge(tool_name: str, args: dict[str, Any]) -> PolicyDecision:
    return POLICY.judge(PolicyEvent(run_id="run", agent="demo", tool_name=tool_name, tool_args=args))


def test_policy_uses_every_action_on_recorded_calls() -> None:
    decided = [
        (call.name, judge(call.name, call.arguments).action.value) for turn in load_turns() for call in turn.calls
    ]

    assert decided == [
        ("bank_account.transfer", "request_approval"),
        ("bank_account.calculate_interest", "allow"),
        ("send_email", "request_approval"),
        ("send_email", "request_approval"),
        ("update_user_info", "deny"),
        ("update_user_info", "deny"),
        ("hotel_booking.book", "request_user_input"),
        ("hotel_booking.book", "allow"),
        ("concert.book_ticket", "request_approval"),
        ("concert.book_ticket", "request_approval"),
        ("festival.book_ticket", "allow"),
    ]


@pytest.mark.parametrize("email", ["example@.com", "nobody", "a b@example.com", "a@example", "a@example.com\n"])
def test_policy_denies_an_invalid_address(email: str) -> None:
    decision = judge("update_user_info", {"user_id": 1, "update_info": {"email": email}})

    assert (decision.action, decision.policy_id) == (Action.DENY, "broken-addresses")


@pytest.mark.parametrize("info", [{"email": "a@example.com"}, {"email": "a.b@mail.example.com"}, {"name": "Ann"}])
def test_policy_requests_approval_of_other_customer_changes(info: dict[str, str]) -> None:
    decision = judge("update_user_info", {"user_id": 1, "update_info": info})

    assert (decision.action, decision.policy_id, decision.error) == (Action.REQUEST_APPROVAL, None, None)


def test_policy_gives_concert_tickets_five_seconds() -> None:
    decision = judge("concert.book_ticket", {"artist": "Ed Sheeran", "location": "Los Angeles"})

    assert decision.terms.timeout_s == 5
    assert "five seconds" in decision.reason


def test_policy_requests_approval_of_an_unknown_tool() -> None:
    assert judge("delete_everything", {}).action is Action.REQUEST_APPROVAL
