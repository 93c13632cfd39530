"""Notifications to one topic of an ntfy broker. It can read them, so only an own one is sent facts and arguments."""

from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from sayso.core.text.invisible import UNCHECKED
from service.channels.base import HttpChannel, Recipient, Rendered, allowed_actions, explain_status, request
from service.channels.cards import DEADLINE_LABELS, Card
from service.channels.config import ChannelConfig
from service.core.settings.receivers import Secret

MESSAGE_BYTES = 4096  # a longer message becomes an attachment
TITLE_BYTES = 250
CLOSING_BYTES = 800
LINE_BYTES = 200
URGENT = 5
NORMAL = 3


def render_card(card: Card, *, own_broker: bool) -> Rendered:
    """Return the notification, with the link as its only action. Arguments that do not fit are omitted as a whole."""
    lines = list(_write_lines(card, own_broker=own_broker))
    text = "\n".join([*lines, f"{', '.join(card.args_title)}:", card.args_text])
    fits = own_broker and count_bytes(text) <= MESSAGE_BYTES
    if not fits:
        text = cut("\n".join([*lines, "Open the item to read its arguments."]), MESSAGE_BYTES)
    title = cut(f"{'Urgent: ' if card.urgent and card.live else ''}{card.title}", TITLE_BYTES)
    body: dict[str, Any] = {
        "title": title.replace("\n", "↵"),
        "message": text,
        "priority": URGENT if card.urgent and card.live else NORMAL,
        "click": card.link,
        "actions": [{"action": "view", "label": "Open", "url": card.link}],
    }
    complete = fits and not card.masked
    actions = allowed_actions(card, complete=complete, decides=frozenset())
    return Rendered(body, f"{body['title']}\n{text}", complete, actions)


def count_bytes(text: str) -> int:
    """Return the length as ntfy counts it."""
    return len(text.encode("utf-8", "replace"))


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` bytes, with `…` where it was cut."""
    if count_bytes(text) <= most:
        return text
    return f"{text.encode('utf-8', 'replace')[: most - 3].decode('utf-8', 'ignore')}…"


def _write_lines(card: Card, *, own_broker: bool) -> Iterator[str]:
    if card.closing:
        yield cut(f"Closed: {card.closing if own_broker else card.ended}", CLOSING_BYTES)
    if own_broker:
        yield from (cut(f"Warning: {warning}", LINE_BYTES) for warning in card.warnings)
    for label, text in card.facts:
        if own_broker or label in DEADLINE_LABELS:
            yield cut(f"{label}: {text}", LINE_BYTES)
    if own_broker and card.claims:
        yield UNCHECKED
        yield from (cut(f"{label}: {text}", LINE_BYTES) for label, text in card.claims)


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


class NtfyChannel(HttpChannel[NtfyConfig]):
    """One topic that notifies everybody who is subscribed to it."""

    shared_address, shared_only = "topic", True

    def __init__(self, config: NtfyConfig) -> None:
        super().__init__(config, urlsplit(config.base_url).netloc)

    def render(self, card: Card) -> Rendered:
        return render_card(card, own_broker=self.config.own_broker)

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Publish the card. Notifications are not replaced, so their id is not kept."""
        await self._publish(await self.write(card))
        return ""

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Publish how the item ended. A notification cannot be replaced on every phone."""
        if not card.live:
            await self._publish(await self.write(card))

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        body = await self.write(card)
        await self._publish({**body, "title": f"Reminder: {body['title']}"})

    async def _publish(self, body: dict[str, Any]) -> None:
        token = self.config.token
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"} if token is not None else {}
        message = {"topic": self.config.topic.get_secret_value(), **body}
        response = await request(self._client, "ntfy", "POST", self.config.base_url, json=message, headers=headers)
        if not response.is_success:
            raise explain_status("ntfy", response)
