"""Cards with a link by a webhook of Teams Workflows. Such cards cannot be replaced, so what follows is a new card."""

import asyncio
from typing import Literal

import httpx
from pydantic import Field, SecretStr, field_validator

from service.channels.base import Recipient, Rendered
from service.channels.cards import Card
from service.channels.config import ChannelConfig
from service.channels.providers import OneDestination, explain_status, request
from service.channels.teams.card import CARD_TYPE, render_card
from service.settings.secret_texts import Secret


class WorkflowConfig(ChannelConfig):
    """The fields of a Workflows channel: the webhook of one flow."""

    kind: Literal["teams_workflow"]
    url: Secret = Field(description="The webhook's URL, which holds its secret.")
    per_minute: int = Field(default=30, ge=1, le=6000, description="The most messages a minute to the provider.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        address = httpx.URL(url.get_secret_value())
        if address.scheme not in ("http", "https") or not address.host:
            raise ValueError("the webhook is an https address; copy it from the flow")
        return url


class WorkflowChannel(OneDestination):
    """One flow that posts cards into a chat or a channel of Teams."""

    def __init__(self, config: WorkflowConfig) -> None:
        super().__init__(config, "flow", httpx.URL(config.url.get_secret_value()).host)
        self.config = config

    def render(self, card: Card) -> Rendered:
        """Return the card without controls that decide."""
        return render_card(card, frozenset())

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Post the card. A flow returns no id."""
        attachment = {"contentType": CARD_TYPE, "content": (await asyncio.to_thread(self.render, card)).body}
        body = {"type": "message", "attachments": [attachment]}
        url = self.config.url.get_secret_value()
        response = await request(self._client, "The flow", "POST", url, json=body)
        if not response.is_success:
            raise explain_status("The flow", response)
        return ""

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Post the card again once the item is closed."""
        if not card.live:
            await self.send(to, card, "")

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        """Post the card again."""
        await self.send(to, card, event_id)
