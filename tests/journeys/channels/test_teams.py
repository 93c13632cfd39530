"""Asked and decided in Microsoft Teams, through the bot's endpoint and real processes."""

from typing import Any

import httpx
import pytest

from demo.journeys import REVIEWER
from launch.stops import wait_until
from tests.fakes.teams import ANNA, Teams, list_actions, list_verbs, read_text
from tests.journeys.channels.desks import BANK, ChannelDesk, signed_in
from tests.journeys.channels.offices import Office, check_dashboard, wanted, write_calls
from tests.journeys.stacks import PATIENCE_S


@pytest.fixture(scope="package")
def desk(office: Office) -> ChannelDesk:
    """The desk of runs that ask in the conversation that anna has linked."""
    desk = office.over("office")
    text = f"link {desk.create_code('anna')}"
    send(desk, office.teams, office.teams.activity(ANNA, type="message", text=text))
    assert office.teams.messages[-1].text == "This chat is linked to anna. Cards arrive here from now on."
    return desk


@pytest.fixture
def teams(office: Office) -> Teams:
    return office.teams


def send(desk: ChannelDesk, teams: Teams, activity: dict[str, Any]) -> dict[str, Any]:
    """Send a message to the bot as the Bot Framework does; return the answer."""
    headers = {"Authorization": f"Bearer {teams.sign()}"}
    url = f"{desk.stack.url}/channels/teams/office/messages"
    answer = httpx.post(url, json=activity, headers=headers, timeout=PATIENCE_S)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def test_approval_from_teams_is_executed(desk: ChannelDesk, teams: Teams) -> None:
    asked = desk.ask(BANK)
    desk.await_delivery(asked)
    card = teams.messages[-1]
    assert card.conversation == f"a:{ANNA}"
    assert "bank_account.transfer" in card.text
    answer = send(desk, teams, teams.invoke(ANNA, list_actions(card.card)["approve"]))
    assert "anna approved this over office at " in read_text(answer["value"])
    assert write_calls(desk.await_effects(asked)) == wanted(BANK)
    assert wait_until(lambda: not list_verbs(card.card), PATIENCE_S)
    assert "Closed: anna approved this over office at " in card.text
    with signed_in(desk.stack.url) as page:
        check_dashboard(page, desk, asked, "anna approved this")


def test_late_press_in_teams_is_told_who_was_first(desk: ChannelDesk, teams: Teams) -> None:
    asked = desk.ask(BANK)
    (item,) = desk.await_delivery(asked)
    card = teams.messages[-1]
    approve = teams.invoke(ANNA, list_actions(card.card)["approve"])
    desk.people[REVIEWER].decide(asked.id, item, "deny", message="Ask Finance first.")
    assert wait_until(lambda: not list_verbs(card.card), PATIENCE_S)
    closing = "Closed: admin denied this over api at "
    assert closing in card.text
    assert closing in read_text(send(desk, teams, approve)["value"])
    assert [tool for tool, _ in desk.await_effects(asked)] == ["bank_account.calculate_interest"]
