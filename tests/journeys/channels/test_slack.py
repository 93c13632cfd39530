"""Asked and decided in Slack, over HTTP and over a socket: a worker executes exactly what was approved there."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import expect

from demo.model import Turn
from launch.stops import wait_until
from sayso.core.canonical_json import JsonObject
from sayso.wire.suspensions import SuspensionView
from tests.fakes.slack import FakeSlack, form_of, running_slack, sign
from tests.fakes.slack_api import ANNA, Message
from tests.journeys.channels.desks import BANK, HOTELS, MAILS, TICKETS, ChannelDesk, open_desk, rules_over, signed_in
from tests.journeys.stacks import PATIENCE_S
from tests.service.channels.slack.worlds import NAME, fields_of, socket_fields
from tests.service.edge.web.reading import press_approve, read_to_the_end

SOCKET = "ops-socket"
BEN = "U0BEN"
REASON = "Reason; the agent sees it"
OVER_HTTP = {"interactive": "interactions", "slash_commands": "commands"}


@dataclass(frozen=True)
class Workspace:
    """A workspace in which anna and ben have linked their accounts, and the desk that asks there."""

    desk: ChannelDesk
    slack: FakeSlack
    everywhere: tuple[FakeSlack, ...]

    def send(self, kind: str, payload: dict[str, Any]) -> Any:
        """Send what somebody did, as Slack does in this mode; return the app's answer."""
        if self.desk.channel == SOCKET:
            return asyncio.run(self.slack.push(kind, payload)).get("payload")
        body = form_of(payload) if kind == "interactive" else urlencode(payload).encode()
        url = f"{self.desk.stack.url}/channels/slack/{self.desk.channel}/{OVER_HTTP[kind]}"
        answer = httpx.post(url, content=body, headers=sign(body), timeout=PATIENCE_S)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def link(self, person: str, user: str) -> None:
        """Link an account with a code that the person created while signed in."""
        answer = self.send("slash_commands", self.slack.command(f"link {self.desk.create_code(person)}", user))
        assert answer["text"] == f"Linked to {person}. You can now decide here."

    def ask(self, turn: Turn) -> tuple[SuspensionView, list[Message]]:
        """Return a run that waits for people, and the cards of its items in the room."""
        asked = self.desk.ask(turn)
        items = self.desk.await_delivery(asked)
        cards = sorted((card for card in self.slack.messages if asked.id in link_of(card)), key=link_of)
        assert len(cards) == len(items)
        return asked, cards

    def press(self, card: Message, action: str, user: str = ANNA) -> None:
        """Press a button of a card."""
        self.send("interactive", self.slack.press(card, f"sayso:{action}", user))

    def open_modal(self, card: Message, action: str) -> dict[str, Any]:
        """Press a button until its modal opens, for which Slack allows three seconds; return the modal."""
        before = len(self.slack.views)

        def opens() -> bool:
            self.press(card, action)
            return len(self.slack.views) > before

        assert wait_until(opens, PATIENCE_S)
        return self.slack.modal()

    def submit(self, view: dict[str, Any], **typed: str) -> Any:
        """Submit a modal; return what is shown next, None where it closes."""
        return self.send("interactive", self.slack.submit(view, **typed))

    def await_vote(self, card: Message, sentence: str) -> bool:
        """Wait until a vote stands in the card's thread."""

        def stands() -> bool:
            return any(one.thread_ts == card.ts and sentence in one.text for one in self.slack.messages)

        return wait_until(stands, PATIENCE_S)

    def await_closing(self, card: Message, sentence: str, over: str = "") -> bool:
        """Wait until the item's card in each workspace says who decided where, and has only the link left."""
        link, closing = link_of(card), f"Closed: {sentence} over {over or self.desk.channel} at "

        def is_closed() -> bool:
            copies = [one for slack in self.everywhere for one in slack.messages if link_of(one) == link]
            return all(set(one.buttons) == {"sayso:open"} and closing in one.screen for one in copies)

        return wait_until(is_closed, PATIENCE_S)

    def decisions(self, asked: SuspensionView) -> list[tuple[str, str]]:
        """Return who decided each item and how, as the dashboard's API shows it."""
        outcomes = [item.outcome for item in self.desk.find(asked.id).items]
        return [(one.by.id, one.verdict) for one in outcomes if one]

    def executed(self, asked: SuspensionView, tool: str) -> list[JsonObject]:
        """Return the arguments of the executed calls of a tool, sorted, once the run has ended."""
        return sorted((args for name, args in self.desk.await_effects(asked) if name == tool), key=str)


def link_of(message: Message) -> str:
    """Return the address of the item's page on a card; empty for other messages."""
    return str(message.buttons["sayso:open"]["url"]) if message.buttons else ""


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Workspace]]:
    """An installation that asks in two workspaces: one sends over HTTP, the other over a socket."""
    with running_slack() as http, running_slack() as socket:
        channels: dict[str, JsonObject] = {NAME: fields_of(http), SOCKET: socket_fields(socket)}
        folder = tmp_path_factory.mktemp("slack")
        with open_desk(folder, channels, rules_over(*channels), ("anna", "ben")) as desk:
            assert wait_until(lambda: bool(socket.sockets), PATIENCE_S)
            found = {
                name: Workspace(replace(desk, channel=name), slack, (http, socket))
                for name, slack in ((NAME, http), (SOCKET, socket))
            }
            for workspace in found.values():
                workspace.link("anna", ANNA)
                workspace.link("ben", workspace.slack.join(BEN))
            yield found


@pytest.fixture(params=[NAME, SOCKET])
def workspace(request: pytest.FixtureRequest, workspaces: dict[str, Workspace]) -> Workspace:
    return workspaces[request.param]


def test_buttons_approve_one_mail_and_deny_another_with_a_reason(workspace: Workspace) -> None:
    asked, (to_john, to_jane) = workspace.ask(MAILS)
    workspace.press(to_john, "approve")
    assert workspace.submit(workspace.open_modal(to_jane, "deny"), **{REASON: "Not to Jane."}) is None

    assert workspace.executed(asked, "send_email") == [asked.items[0].tool.args]
    assert workspace.decisions(asked) == [("anna", "approved"), ("anna", "denied")]
    assert workspace.await_closing(to_john, "anna approved this")
    assert workspace.await_closing(to_jane, "anna denied this")
    assert "Reason: Not to Jane." in to_jane.screen


def test_transfer_runs_as_edited_in_the_modal(workspace: Workspace) -> None:
    asked, (card,) = workspace.ask(BANK)
    view = workspace.open_modal(card, "edit")
    refused = workspace.submit(view, amount="a lot")
    assert refused["response_action"] == "errors"
    assert workspace.submit(view, amount="12.5") is None

    edited = {**asked.items[0].tool.args, "amount": 12.5}
    assert workspace.executed(asked, "bank_account.transfer") == [edited]
    assert workspace.decisions(asked) == [("anna", "approved")]
    assert workspace.await_closing(card, "anna approved this with 1 change")


def test_stay_is_booked_with_the_value_of_the_modal(workspace: Workspace) -> None:
    asked, (card,) = workspace.ask(HOTELS)
    assert workspace.submit(workspace.open_modal(card, "value"), **{"Check-out": "2022-05-07"}) is None

    given = {**asked.items[0].tool.args, "check_out": "2022-05-07"}
    assert given in workspace.executed(asked, "hotel_booking.book")
    assert workspace.decisions(asked) == [("anna", "answered")]
    assert workspace.await_closing(card, "anna gave a value")


def test_tickets_are_bought_after_two_approvals(workspace: Workspace) -> None:
    asked, cards = workspace.ask(TICKETS)
    for card in cards:
        workspace.press(card, "approve")
    for card in cards:
        assert workspace.await_vote(card, "anna approved")
    assert workspace.decisions(asked) == []
    for card in cards:
        workspace.press(card, "approve", BEN)

    bought = workspace.executed(asked, "concert.book_ticket")
    assert bought == sorted((item.tool.args for item in asked.items), key=str)
    assert workspace.decisions(asked) == [("ben", "approved")] * 2
    for card in cards:
        assert workspace.await_closing(card, "ben approved this")


def test_modal_is_refused_after_a_decision_on_the_dashboard(workspace: Workspace) -> None:
    asked, (card,) = workspace.ask(BANK)
    view = workspace.open_modal(card, "edit")
    approve_in_browser(card.buttons["sayso:open"]["url"])

    late = workspace.submit(view, amount="1")
    assert late["response_action"] == "update"
    assert "ben approved this over web at " in str(late["view"])
    assert workspace.await_closing(card, "ben approved this", over="web")
    assert workspace.executed(asked, "bank_account.transfer") == [asked.items[0].tool.args]
    assert workspace.decisions(asked) == [("ben", "approved")]


def approve_in_browser(url: str) -> None:
    """Sign in as ben at the card's link, and approve there."""
    with signed_in(url, "ben") as page:
        read_to_the_end(page)
        press_approve(page)
        expect(page.locator("#standing")).to_contain_text("approved")
