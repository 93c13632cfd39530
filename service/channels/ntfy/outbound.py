"""Publishing of notifications to one topic of an ntfy broker."""

from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
from pydantic import Field, SecretStr, field_validator

from service.channels.base import Recipient, Rendered
from service.channels.cards import Card
from service.channels.config import ChannelConfig, Secret
from service.channels.ntfy.card import render_card
from service.channels.providers import explain_status, open_client, request


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


@dataclass
class NtfyChannel:
    """One topic that notifies everybody who is subscribed to it."""

    config: NtfyConfig
    kind: str = "ntfy"
    shared_address: str = "topic"
    shared_only: bool = True
    name: str = field(init=False)
    per_minute: int = field(init=False)
    destination: str = field(init=False)
    _client: httpx.AsyncClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.name, self.per_minute = self.config.name, self.config.per_minute
        self.destination = f"{urlsplit(self.config.base_url).netloc} {self.config.name}"
        self._client = open_client()

    def render(self, card: Card) -> Rendered:
        """Return the card as a notification."""
        return render_card(card, own_broker=self.config.own_broker)

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Publish the card. Notifications are not replaced, so their id is not kept."""
        await self._publish(self.render(card).body)
        return ""

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Publish how the item ended. A notification cannot be replaced on every phone."""
        if not card.live:
            await self._publish(self.render(card).body)

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        """Publish the card again."""
        body = self.render(card).body
        await self._publish({**body, "title": f"Reminder: {body['title']}"})

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _publish(self, body: dict[str, Any]) -> None:
        token = self.config.token
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"} if token is not None else {}
        message = {"topic": self.config.topic.get_secret_value(), **body}
        response = await request(self._client, "ntfy", "POST", self.config.base_url, json=message, headers=headers)
        if not response.is_success:
            raise explain_status("ntfy", response)
