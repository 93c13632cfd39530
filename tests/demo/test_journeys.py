"""Tests of the demo's reviewer."""

from demo.clients import ItemSeen, ToolSeen
from demo.journeys import choose_decision, request_text
from demo.model import RecordedCall, load_turns, plan_turns

BANK, MAILS, _, HOTELS, TICKETS = load_turns()


def item_of(call: RecordedCall) -> ItemSeen:
    return ItemSeen(item_id="i1", tool=ToolSeen(name=call.name, args=call.arguments), digest="0" * 64, outcome=None)


def test_request_text_holds_all_requests_in_order() -> None:
    assert plan_turns(request_text(), load_turns()) == load_turns()


def test_choose_decision_lowers_only_the_amount_of_the_transfer() -> None:
    decision = choose_decision(item_of(BANK.calls[0]))

    assert decision == {
        "action": "approve",
        "args": {"from_account": "checking", "to_account": "saving", "amount": 750.0},
    }


def test_choose_decision_approves_one_mail_and_denies_the_other() -> None:
    first, second = [choose_decision(item_of(call)) for call in MAILS.calls]

    assert first == {"action": "approve"}
    assert second is not None
    assert second["action"] == "deny"
    assert second["message"]


def test_choose_decision_gives_the_check_out_date() -> None:
    assert choose_decision(item_of(HOTELS.calls[0])) == {"action": "value", "value": "2022-05-07"}


def test_choose_decision_lets_concert_tickets_expire() -> None:
    assert choose_decision(item_of(TICKETS.calls[0])) is None
