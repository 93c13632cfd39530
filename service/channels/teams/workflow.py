"""Cards with a link by a webhook of Teams Workflows. Such cards cannot be replaced, so what follows is a new card."""

from dataclasses import dataclass, field
from typing import Literal

import httpx
from pydantic import Field, SecretStr, field_validator

from service.channels.base import Recipient, Rendered
from service.channels.cards import Card
from service.channels.config import ChannelConfig, Secret
from service.channels.providers import explain_status, open_client, request
from service.channels.teams.card import CARD_TYPE, render_card


class WorkflowConfig(ChannelConfig):
    """The fields of a Workflows channel: the webhook of one flow."""

    kind: Literal["teams_workflow"]
    url: Secret = Field(description="The webhook's URL, which holds its secret.")
    per_minute: int = Field(default=30, ge=1, le=6000, description="The most messages a minute to the provider.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        found = httpx.URL(url.get_secret_value())
        if found.scheme not in ("http", "https") or not found.host:
            raise ValueError("the webhook is an https address; copy it from the flow")
        return url


@dataclass
class WorkflowChannel:
    """One flow that posts cards into a chat or a channel of Teams."""

    config: WorkflowConfig
    kind: str = "teams_workflow"
    shared_address: str = "flow"
    shared_only: bool = True
    name: str = field(init=False)
    per_minute: int = field(init=False)
    destination: str = field(init=False)
    _client: httpx.AsyncClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.name, self.per_minute = self.config.name, self.config.per_minute
        self.destination = f"{httpx.URL(self.config.url.get_secret_value()).host} {self.config.name}"
        self._client = open_client()

    def render(self, card: Card) -> Rendered:
        """Return the card without controls that decide."""
        return render_card(card, frozenset())

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Post the card. A flow returns no id."""
        attachment = {"contentType": CARD_TYPE, "content": self.render(card).body}
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

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
