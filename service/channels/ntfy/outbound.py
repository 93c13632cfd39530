"""Publishing of notifications to one topic of an ntfy broker."""

import asyncio
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from service.channels.base import Recipient, Rendered
from service.channels.cards import Card
from service.channels.config import ChannelConfig
from service.channels.ntfy.card import render_card
from service.channels.providers import OneDestination, explain_status, request
from service.settings.secret_texts import Secret


class NtfyConfig(ChannelConfig):
    """The fields of an ntfy channel: one topic."""

    kind: Literal["ntfy"]
    topic: Secret = Field(description="The topic. Everybody who knows it can read it on an open broker.")
    token: Secret | None = Field(default=None, description="An access token, `tk_…`.")
    base_url: str = Field(default="https://ntfy.sh", pattern=r"^https?://[^\s?#]+[^\s?#/]$")
    own_broker: bool = Field(default=False, description="Whether the broker is yours; only then it is sent arguments.")

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, topic: SecretStr) -> SecretStr:
        text = topic.get_secret_value()
        if not (1 <= len(text) <= 64 and text.isascii() and text.replace("-", "_").replace("_", "a").isalnum()):
            raise ValueError("a topic is 1 to 64 letters, digits, - and _")
        return topic


class NtfyChannel(OneDestination):
    """One topic that notifies everybody who is subscribed to it."""

    def __init__(self, config: NtfyConfig) -> None:
        super().__init__(config, "topic", urlsplit(config.base_url).netloc)
        self.config = config

    def render(self, card: Card) -> Rendered:
        """Return the card as a notification."""
        return render_card(card, own_broker=self.config.own_broker)

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Publish the card. Notifications are not replaced, so their id is not kept."""
        await self._publish((await asyncio.to_thread(self.render, card)).body)
        return ""

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Publish how the item ended. A notification cannot be replaced on every phone."""
        if not card.live:
            await self._publish((await asyncio.to_thread(self.render, card)).body)

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        """Publish the card again."""
        body = (await asyncio.to_thread(self.render, card)).body
        await self._publish({**body, "title": f"Reminder: {body['title']}"})

    async def _publish(self, body: dict[str, Any]) -> None:
        token = self.config.token
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"} if token is not None else {}
        message = {"topic": self.config.topic.get_secret_value(), **body}
        response = await request(self._client, "ntfy", "POST", self.config.base_url, json=message, headers=headers)
        if not response.is_success:
            raise explain_status("ntfy", response)
