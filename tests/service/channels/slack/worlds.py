"""Slack channels for tests, on a fake workspace."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from httpx import Response

from sayso.core.records.items import Item, ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from service.channels.base import Recipient
from service.channels.cards import build_card
from service.channels.slack.api import SlackConfig
from service.channels.slack.outbound import SlackChannel
from tests.builders import REFUND, make_pending
from tests.fakes.slack import SIGNING_SECRET, FakeSlack, form_of, sign
from tests.fakes.slack_api import ANNA, APP, APP_TOKEN, BOT_TOKEN, ROOM, TEAM, Message
from tests.service.worlds import World

NAME = "ops-slack"


def fields_of(slack: FakeSlack, **fields: Any) -> dict[str, Any]:
    """Return the fields of a channel in the channels file."""
    known: dict[str, Any] = {"kind": "slack", "app_id": APP, "team_id": TEAM, "channel": ROOM, "bot_token": BOT_TOKEN}
    known |= {"base_url": f"{slack.url}/api/", "hooks_url": f"{slack.url}/hooks/", "per_minute": 6000}
    return {**known, "signing_secrets": [SIGNING_SECRET], **fields}


def config_of(slack: FakeSlack, **fields: Any) -> SlackConfig:
    """Return a channel's configuration."""
    return SlackConfig.model_validate({"name": NAME, **fields_of(slack, **fields)})


def socket_fields(slack: FakeSlack, **fields: Any) -> dict[str, Any]:
    """Return the fields of a channel in Socket Mode."""
    return fields_of(slack, signing_secrets=[], app_token=APP_TOKEN, **fields)


@dataclass
class SlackWorld:
    """The running app with a Slack channel, and the workspace on the other side."""

    world: World
    slack: FakeSlack

    @property
    def channel(self) -> SlackChannel:
        """The open channel of the app."""
        found = self.world.app.state.channels.find(NAME)
        assert isinstance(found, SlackChannel)
        return found

    async def link(self, user: str = ANNA, person: str = "anna") -> None:
        """Link an account as `/sayso link CODE` does."""
        code = await self.world.wiring.contacts.create_code(person, NAME)
        await self.world.wiring.contacts.redeem_code(NAME, code.code, user, user)

    async def ask(self, *drafts: ItemDraft, to: str = ROOM, **fields: Any) -> tuple[SuspensionRecord, Message]:
        """Return a pending suspension, and its card in a room."""
        return await self.send(await make_pending(self.world.wiring, *drafts, **fields), to)

    async def send(self, record: SuspensionRecord, to: str = ROOM) -> tuple[SuspensionRecord, Message]:
        """Send the card of a suspension as it is now."""
        record = (await self.world.wiring.desk.suspensions.read(record.id)).record
        card = build_card(record, record.items[0], REFUND, self.world.wiring.settings.public_url)
        await self.channel.send(Recipient("", to), card, f"{record.id} {record.version}")
        return record, self.slack.messages[-1]

    async def read(self, record: SuspensionRecord) -> Item:
        """Return the item as it is now."""
        return (await self.world.wiring.desk.suspensions.read(record.id)).record.items[0]

    async def show(self, record: SuspensionRecord) -> str:
        """Return the item's card as it is now."""
        found = (await self.world.wiring.desk.suspensions.read(record.id)).record
        return self.channel.render(build_card(found, found.items[0], REFUND, "https://sayso.example")).text

    async def post(self, path: str, body: bytes, headers: Any = None) -> Response:
        """Send a request; return the answer once all work that it began is done."""
        signed = sign(body) if headers is None else headers
        async with self.world.client() as client:
            answer = await client.post(f"/channels/slack/{NAME}/{path}", content=body, headers=signed)
        await self.channel.background.finish()
        return answer

    async def interact(self, payload: dict[str, Any]) -> Response:
        """Send a press or a submission."""
        answer = await self.post("interactions", form_of(payload))
        assert answer.status_code == 200, answer.text
        return answer

    async def press(self, message: Message, action: str, user: str = ANNA) -> str:
        """Press a button; return what was said to the person."""
        before = len(self.slack.responses)
        await self.interact(self.slack.press(message, f"sayso:{action}", user))
        return " ".join(one["text"] for one in self.slack.responses[before:])

    async def command(self, text: str, user: str = ANNA) -> str:
        """Type `/sayso text`; return the answer."""
        answer = await self.post("commands", urlencode(self.slack.command(text, user)).encode())
        assert answer.status_code == 200, answer.text
        return str(answer.json()["text"])
