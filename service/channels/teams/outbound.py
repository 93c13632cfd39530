"""Cards through the Bot Framework's connector, or by a webhook of Teams Workflows, which cannot replace a card."""

import re
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote

import httpx
from pydantic import Field, SecretStr, field_validator

from service.channels.base import DeliveryFailed, HttpChannel, Recipient, Rendered, explain_status, read_json, request
from service.channels.cards import Card
from service.channels.config import ChannelConfig
from service.channels.teams.card import CARD_TYPE, DECIDES, Element, render_card, render_digest
from service.channels.teams.tokens import AccessTokens, BotKeys
from service.core.settings.receivers import Secret

_GUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_URL = r"^https?://[^\s?#]+[^\s?#/]$"
_ROOM = re.compile(r"19:[^\s|]{1,200}")


class TeamsConfig(ChannelConfig):
    """The fields of a Teams channel: one bot in one tenant."""

    kind: Literal["teams"]
    app_id: str = Field(pattern=f"^{_GUID}$", description="The bot's application id.")
    app_password: Secret = Field(description="The bot's client secret.")
    tenant_id: str = Field(pattern=f"^{_GUID}$", description="The tenant; messages of others are refused.")
    room: str = Field(default="", pattern=f"^({_ROOM.pattern})?$", description="A conversation for shared cards.")
    per_minute: int = Field(default=600, ge=1, le=6000, description="The most messages a minute to the provider.")
    service_url: str = Field(default="https://smba.trafficmanager.net/teams", pattern=_URL)
    login_url: str = Field(default="https://login.microsoftonline.com", pattern=_URL)
    metadata_url: str = Field(default="https://login.botframework.com/v1/.well-known/openidconfiguration", pattern=_URL)
    issuer: str = "https://api.botframework.com"


class TeamsChannel(HttpChannel[TeamsConfig]):
    """One bot that sends cards to people, and into a room."""

    def __init__(self, config: TeamsConfig) -> None:
        super().__init__(config, config.service_url.partition("://")[2])
        self.shared_address = config.room
        self._conversations: dict[str, str] = {}
        self.keys = BotKeys(self._client, config.metadata_url, config.issuer, config.app_id)
        url = f"{config.login_url}/{config.tenant_id}/oauth2/v2.0/token"
        self._tokens = AccessTokens(self._client, url, config.app_id, config.app_password.get_secret_value())

    def render(self, card: Card) -> Rendered:
        return render_card(card, DECIDES if self.config.decide else frozenset())

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Send the card; return the conversation and the id of the message in it."""
        conversation = await self._find_conversation(to.address)
        message = _write(card.headline, await self.write(card))
        sent = await self._call("POST", f"/{quote(conversation, safe='')}/activities", message)
        return f"{conversation}|{sent.get('id', '')}"

    async def send_digest(self, to: Recipient, cards: Sequence[Card], event_id: str) -> None:
        conversation = await self._find_conversation(to.address)
        message = _write("Open items", render_digest(cards))
        await self._call("POST", f"/{quote(conversation, safe='')}/activities", message)

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        conversation, _, message = reference.rpartition("|")
        path = f"/{quote(conversation, safe='')}/activities/{quote(message, safe='')}"
        await self._call("PUT", path, {**_write(card.headline, await self.write(card)), "id": message})

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        text = f"Reminder: {card.headline} still waits for a decision: {card.link}"
        await self.say(reference.rpartition("|")[0], text)

    async def say(self, conversation: str, text: str) -> None:
        body = {"type": "message", "textFormat": "plain", "text": text}
        await self._call("POST", f"/{quote(conversation, safe='')}/activities", body)

    async def _find_conversation(self, address: str) -> str:
        """Return the conversation with a person, or the room; raises `DeliveryFailed`."""
        if _ROOM.fullmatch(address):
            return address
        if not re.fullmatch(_GUID, address):
            raise DeliveryFailed("This is no person or room of Teams. Link the address again.", permanent=True)
        if address not in self._conversations:
            body = {
                "bot": {"id": f"28:{self.config.app_id}"},
                "members": [{"id": address}],
                "tenantId": self.config.tenant_id,
                "channelData": {"tenant": {"id": self.config.tenant_id}},
                "isGroup": False,
            }
            conversation = (await self._call("POST", "", body)).get("id")
            if not isinstance(conversation, str) or "|" in conversation:
                raise DeliveryFailed("Teams sent an answer that cannot be read.")
            if len(self._conversations) >= 10_000:
                self._conversations.clear()
            self._conversations[address] = conversation
        return self._conversations[address]

    async def _call(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {await self._tokens.find()}"}
        url = f"{self.config.service_url}/v3/conversations{path}"
        response = await request(self._client, "Teams", method, url, json=body, headers=headers)
        if response.is_success:
            return read_json(response)
        if response.status_code == 401:
            self._tokens.forget()
            raise DeliveryFailed("Teams refused the bot's token; a new one is requested.")
        if response.status_code in (403, 404):
            raise DeliveryFailed("The person or room has not installed the bot, or is gone.", permanent=True)
        raise explain_status("Teams", response)


def _write(summary: str, content: Element) -> dict[str, Any]:
    return {"type": "message", "summary": summary, "attachments": [{"contentType": CARD_TYPE, "content": content}]}


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


class WorkflowChannel(HttpChannel[WorkflowConfig]):
    """One flow that posts cards into a chat or a channel of Teams."""

    shared_address, shared_only = "flow", True

    def __init__(self, config: WorkflowConfig) -> None:
        super().__init__(config, httpx.URL(config.url.get_secret_value()).host)

    def render(self, card: Card) -> Rendered:
        return render_card(card, frozenset())

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Post the card. A flow returns no id."""
        attachment = {"contentType": CARD_TYPE, "content": await self.write(card)}
        body = {"type": "message", "attachments": [attachment]}
        url = self.config.url.get_secret_value()
        response = await request(self._client, "The flow", "POST", url, json=body)
        if not response.is_success:
            raise explain_status("The flow", response)
        return ""

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        if not card.live:
            await self.send(to, card, "")

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        await self.send(to, card, event_id)
