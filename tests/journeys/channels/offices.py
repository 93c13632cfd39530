"""One installation with all channels but Slack over fakes of their providers, where each run names its channel."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page, expect
from pydantic import JsonValue

from demo.model import Turn
from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.wire.suspensions import SuspensionView
from service.core.settings import CHECKOUT
from tests.fakes.push import PushService, serving_push
from tests.fakes.smtp import MailServer, serving_mail
from tests.fakes.teams import ANNA, Teams, serving_teams
from tests.fakes.telegram import TOKEN, Telegram, serving_telegram
from tests.journeys.channels.desks import ChannelDesk, open_desk
from tests.receivers import Receiver, receiving
from tests.service.channels.teams.test_outbound import fields_of

CHAT = 4711
"""Anna's chat in Telegram."""


@dataclass(frozen=True)
class Office:
    """The installation, and the providers around it."""

    desk: ChannelDesk
    teams: Teams
    telegram: Telegram
    mail: MailServer
    push: PushService
    receiver: Receiver

    def over(self, channel: str) -> ChannelDesk:
        """Return the desk of the runs that ask over one channel."""
        return replace(self.desk, channel=channel)


@contextmanager
def running_office(folder: Path, certificate: Path) -> Iterator[Office]:
    """Run a whole Sayso with anna as its reviewer."""
    with (
        serving_teams(ANNA) as teams,
        serving_telegram(CHAT) as telegram,
        serving_mail() as mail,
        serving_push(certificate) as push,
        receiving(certificate) as receiver,
    ):
        server: JsonObject = {"host": "localhost", "port": mail.port, "security": "none"}
        channels: dict[str, JsonObject] = {
            "office": fields_of(teams),
            "chat": {"kind": "telegram", "bot_token": TOKEN, "base_url": telegram.url},
            "mail": {"kind": "mail", "sender": "desk@sayso.example", **server},
            "phone": {"kind": "push", "contact": "mailto:ops@example.com"},
        }
        with open_desk(folder, channels, rules_by_channel(channels), SAYSO_AAP_ALLOW_LOOPBACK="true") as desk:
            yield Office(desk, teams, telegram, mail, push, receiver)


def rules_by_channel(channels: Iterable[str]) -> JsonObject:
    """Return the demo's rules, and for each channel those that ask over it if the run names it."""
    rules: dict[str, Any] = yaml.safe_load((CHECKOUT / "demo" / "policy.yaml").read_text())
    asking = [rule for rule in rules["rules"] if rule["action"].startswith("request_")]
    for channel in channels:
        own = {"priority": 500, "claimed": {"equals": {"channel": channel}}, "terms": {"channels": [channel]}}
        rules["rules"] += [{**rule, **own, "id": f"{rule['id']}-{channel}"} for rule in asking]
    return rules


def check_dashboard(page: Page, desk: ChannelDesk, asked: SuspensionView, receipt: str) -> None:
    """Check that the dashboard shows the notifications, who decided, and how the run ended."""
    page.goto(f"{desk.stack.url}/items/{asked.id}/{asked.items[0].item_id}")
    expect(page.locator("#standing")).to_contain_text(receipt)
    for delivery in desk.find(asked.id).items[0].deliveries:
        expect(page.locator(".deliveries")).to_contain_text(f"was notified over {delivery.channel} ")
    page.goto(f"{desk.stack.url}/runs/{asked.run.id}")
    expect(page.get_by_role("region", name="Result")).to_contain_text("2 of 2 calls succeeded.")


def wanted(turn: Turn, **changes: JsonValue) -> list[str]:
    """Return the calls of a turn as their effects are written, with changed arguments of the first."""
    first, *others = [(call.name, call.arguments) for call in turn.calls]
    return write_calls([(first[0], {**first[1], **changes}), *others])


def write_calls(calls: Iterable[tuple[str, JsonObject]]) -> list[str]:
    """Return calls as sorted texts, to compare them."""
    return sorted(canonical_json([tool, args]).decode() for tool, args in calls)
