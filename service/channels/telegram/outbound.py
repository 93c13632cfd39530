"""Sending of messages through Telegram's bot API."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator

from service.channels.base import DeliveryFailed, HttpChannel, Recipient, Rendered, explain_status, read_json, request
from service.channels.cards import Card
from service.channels.config import ChannelConfig
from service.channels.telegram.card import DECIDES, cut, escape, render_card, write_digest
from service.core.settings.receivers import Secret

LONGEST_POLL_S = 50
NOTICE_CHARS = 200  # the longest notice to somebody who pressed a button
REPLY_UNITS = 4000
_MARKUP: dict[str, Any] = {"parse_mode": "HTML", "link_preview_options": {"is_disabled": True}}
_SPARE_S = 10.0
_GONE = {
    "Bad Request: chat not found": "The chat does not exist, or the person never started the bot.",
    "Forbidden: bot was blocked by the user": "The person has blocked the bot.",
    "Forbidden: user is deactivated": "The person's account is deleted.",
    "Unauthorized": "Telegram does not know the bot. Correct bot_token.",
    "Not Found": "Telegram does not know the bot. Correct bot_token.",
}


class TelegramConfig(ChannelConfig):
    """The fields of a Telegram channel: one bot."""

    kind: Literal["telegram"]
    bot_token: Secret = Field(description="The bot's token from @BotFather.")
    per_minute: int = Field(default=1200, ge=1, le=1800, description="The most messages a minute to the provider.")
    poll_s: int = Field(default=25, ge=1, le=LONGEST_POLL_S, description="How long one poll for updates lasts.")
    base_url: str = Field(default="https://api.telegram.org", pattern=r"^https?://[^\s?#]+[^\s?#/]$")

    @field_validator("bot_token")
    @classmethod
    def _check_token(cls, token: SecretStr) -> SecretStr:
        number, colon, secret = token.get_secret_value().partition(":")
        if not (number.isdigit() and colon and len(secret) >= 20 and secret.replace("-", "_").isidentifier()):
            raise ValueError("a bot token reads `123456:ABC…`; copy it from @BotFather")
        return token


class Refused(DeliveryFailed):
    """Telegram refused a request. `description` is its own sentence, for decisions in the program only."""

    def __init__(self, failure: DeliveryFailed, description: str) -> None:
        super().__init__(failure.reason, retry_after_s=failure.retry_after_s, permanent=failure.permanent)
        self.description = description


class TelegramChannel(HttpChannel[TelegramConfig]):
    """One bot that sends cards into private chats."""

    def __init__(self, config: TelegramConfig) -> None:
        super().__init__(config, config.base_url.partition("://")[2])

    def render(self, card: Card) -> Rendered:
        return render_card(card, DECIDES if self.config.decide else frozenset())

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Send the card into the person's chat; return the message's id."""
        sent = await self.call("sendMessage", chat_id=_read_chat(to), **await self.write(card))
        return str(sent["message_id"])

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Replace the message, buttons included."""
        try:
            body = await self.write(card)
            await self.call("editMessageText", chat_id=_read_chat(to), message_id=int(reference), **body)
        except Refused as refused:
            if not refused.description.startswith("Bad Request: message is not modified"):
                raise

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        """Reply to the card, so that the person's phone notifies them again."""
        text = f"Reminder: <b>{escape(card.headline)}</b> still waits for a decision."
        await self.reply(to.address, int(reference), text)

    async def send_digest(self, to: Recipient, cards: Sequence[Card], event_id: str) -> None:
        await self.call("sendMessage", chat_id=_read_chat(to), text=write_digest(cards), **_MARKUP)

    async def reply(self, address: str, message_id: int, html: str, **markup: Any) -> int:
        """Reply to a message of a chat, also if it was deleted; return the id of the reply."""
        sent = await self.call(
            "sendMessage",
            chat_id=_read_chat(Recipient("", address)),
            text=html,
            reply_parameters={"message_id": message_id, "allow_sending_without_reply": True},
            **_MARKUP,
            **markup,
        )
        return int(sent["message_id"])

    async def say(self, address: str, message_id: int, text: str) -> None:
        await self.reply(address, message_id, escape(cut(text, REPLY_UNITS)))

    async def answer(self, press_id: str, text: str, *, alert: bool = False) -> None:
        """Answer the press of a button, which ends its waiting sign."""
        await self.call(
            "answerCallbackQuery", callback_query_id=press_id, text=cut(text, NOTICE_CHARS), show_alert=alert
        )

    async def poll(self, offset: int) -> list[dict[str, Any]]:
        """Return the updates from `offset` on, and wait for the first; the earlier ones are deleted at Telegram."""
        updates = await self.call(
            "getUpdates",
            timeout_s=self.config.poll_s + _SPARE_S,
            offset=offset,
            timeout=self.config.poll_s,
            allowed_updates=["message", "callback_query"],
        )
        return [update for update in updates if isinstance(update, dict)] if isinstance(updates, list) else []

    async def call(self, method: str, timeout_s: float | None = None, **fields: Any) -> Any:
        """Call a method of the bot API and return its result; raises `DeliveryFailed`."""
        url = f"{self.config.base_url}/bot{self.config.bot_token.get_secret_value()}/{method}"
        limit = {} if timeout_s is None else {"timeout": timeout_s}
        response = await request(self._client, "Telegram", "POST", url, json=fields, **limit)
        body = read_json(response)
        if response.is_success and body.get("ok") is True:
            return body.get("result")
        description, parameters = str(body.get("description", "")), body.get("parameters")
        wait = parameters.get("retry_after") if isinstance(parameters, dict) else None
        failure = explain_status("Telegram", response, float(wait) if isinstance(wait, int | float) else None)
        if response.is_success:
            failure = DeliveryFailed("Telegram sent an answer that cannot be read.")
        elif description in _GONE:
            failure = DeliveryFailed(_GONE[description], permanent=True)
        raise Refused(failure, description)


def _read_chat(to: Recipient) -> int:
    """Return the id of a private chat; raises `DeliveryFailed` for anything else."""
    if not (to.address.isascii() and to.address.isdigit() and len(to.address) <= 16):
        raise DeliveryFailed("This is not the id of a private chat. Link the chat again.", permanent=True)
    return int(to.address)
