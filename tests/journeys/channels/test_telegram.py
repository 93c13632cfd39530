"""Asked and decided in Telegram, through the bot's long poll and real processes."""

import pytest

from demo.journeys import REVIEWER
from launch.stops import wait_until
from tests.fakes.telegram import Message, Telegram
from tests.journeys.channels.desks import BANK, HOTELS, ChannelDesk, signed_in
from tests.journeys.channels.offices import CHAT, Office, check_dashboard, wanted, write_calls
from tests.journeys.stacks import PATIENCE_S


@pytest.fixture(scope="package")
def desk(office: Office) -> ChannelDesk:
    """The desk of runs that ask in the chat that anna has linked."""
    desk = office.over("chat")
    office.telegram.say(CHAT, f"/start {desk.create_code('anna')}")
    assert wait_until(lambda: bool(office.telegram.messages), PATIENCE_S)
    assert office.telegram.messages[0].text == "This chat is linked to anna. Cards arrive here from now on."
    return desk


@pytest.fixture
def telegram(office: Office) -> Telegram:
    return office.telegram


def press(telegram: Telegram, message: Message, button: str, data: str = "") -> str:
    """Press a button of the card; return the notice."""
    press_id = telegram.press(message, button, data=data)
    assert wait_until(lambda: press_id in telegram.answers, PATIENCE_S)
    return telegram.answers[press_id][0]


def test_value_from_telegram_is_executed(desk: ChannelDesk, telegram: Telegram) -> None:
    asked = desk.ask(HOTELS)
    desk.await_delivery(asked)
    card = telegram.messages[-1]
    assert "hotel_booking.book" in card.text
    assert press(telegram, card, "Enter value…") == "Reply to the question below."
    telegram.say(CHAT, "2022-05-07", reply_to=telegram.messages[-1].message_id)
    assert write_calls(desk.await_effects(asked)) == wanted(HOTELS, check_out="2022-05-07")
    assert wait_until(lambda: not card.data, PATIENCE_S)
    assert "Closed: anna gave a value over chat at " in card.text
    with signed_in(desk.stack.url) as page:
        check_dashboard(page, desk, asked, "anna gave a value")


def test_late_press_in_telegram_is_told_who_was_first(desk: ChannelDesk, telegram: Telegram) -> None:
    asked = desk.ask(BANK)
    (item,) = desk.await_delivery(asked)
    card = telegram.messages[-1]
    approve = card.data["Approve"]
    desk.people[REVIEWER].decide(asked.id, item, "deny", message="Ask Finance first.")
    assert wait_until(lambda: not card.data, PATIENCE_S)
    assert "Closed: admin denied this over api at " in card.text
    assert press(telegram, card, "Approve", data=approve).startswith("admin denied this at ")
    assert [tool for tool, _ in desk.await_effects(asked)] == ["bank_account.calculate_interest"]
