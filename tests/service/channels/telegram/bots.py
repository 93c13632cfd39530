"""A listening bot in Telegram, and the chats of anna and ben with it."""

import asyncio
from typing import Any, NamedTuple

from sayso.core.records.suspensions import SuspensionRecord
from service.channels.base import Recipient
from service.channels.cards import build_card
from service.channels.telegram.outbound import TelegramChannel
from service.core.wiring import Wiring
from tests.builders import REFUND
from tests.fakes.telegram import Message, Telegram

ANNA, BEN = 4711, 4712


class Bot(NamedTuple):
    """A listening bot, and the two sides of it."""

    telegram: Telegram
    channel: TelegramChannel
    wiring: Wiring

    async def link(self, person: str, chat: int) -> None:
        code = (await self.wiring.contacts.create_code(person, "tg")).code
        await self.say(chat, f"/start {code}")

    async def show(self, record: SuspensionRecord, chat: int = ANNA) -> Message:
        """Send the card of the first item, and return its message."""
        card = build_card(record, record.items[0], REFUND, self.wiring.settings.public_url)
        await self.channel.send(Recipient("anna", str(chat)), card, "e1")
        return self.telegram.messages[-1]

    async def press(self, message: Message, button: str, **fields: Any) -> tuple[str, bool]:
        """Press a button; return the notice, and whether it is an alert."""
        press_id = self.telegram.press(message, button, **fields)
        assert await asyncio.to_thread(self.telegram.answered, press_id)
        return self.telegram.answers[press_id]

    async def say(self, chat: int, text: str, reply_to: int | None = None) -> str:
        """Send a message; return the bot's answer."""
        count = len(self.telegram.messages)
        self.telegram.say(chat, text, reply_to=reply_to)
        assert await asyncio.to_thread(self.telegram.sent, count + 1)
        return self.telegram.messages[-1].text

    async def read(self, record: SuspensionRecord) -> SuspensionRecord:
        return (await self.wiring.desk.suspensions.read(record.id)).record
