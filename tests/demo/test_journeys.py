"""The reviewer of the demo has a word for every item, or lets its time run out."""

from demo.clients import ItemSeen, ToolSeen
from demo.journeys import choose_word, request_text
from demo.turns import RecordedCall, load_turns, plan_turns

BANK, MAILS, _, HOTELS, TICKETS = load_turns()


def item_of(call: RecordedCall) -> ItemSeen:
    return ItemSeen(item_id="i1", tool=ToolSeen(name=call.name, args=call.arguments), digest="0" * 64, outcome=None)


def test_all_recorded_requests_are_asked_in_the_order_of_the_file() -> None:
    assert plan_turns(request_text(), load_turns()) == load_turns()


def test_the_transfer_is_approved_with_a_lower_amount_and_nothing_else_changed() -> None:
    word = choose_word(item_of(BANK.calls[0]))

    assert word == {"action": "approve", "args": {"from_account": "checking", "to_account": "saving", "amount": 750.0}}


def test_one_mail_is_approved_as_it_is_and_the_other_denied_with_a_reason() -> None:
    first, second = [choose_word(item_of(call)) for call in MAILS.calls]

    assert first == {"action": "approve"}
    assert second is not None
    assert second["action"] == "deny"
    assert second["message"]


def test_the_hotel_gets_its_value() -> None:
    assert choose_word(item_of(HOTELS.calls[0])) == {"action": "value", "value": "2022-05-07"}


def test_the_concert_tickets_are_left_to_their_deadline() -> None:
    assert choose_word(item_of(TICKETS.calls[0])) is None
